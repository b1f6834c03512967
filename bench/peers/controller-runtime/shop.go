package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var shops = schema.GroupVersion{Group: "bench.example.com", Version: "v1"}

// Shop is the custom resource of the benchmark.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShopSpec   `json:"spec"`
	Status            ShopStatus `json:"status,omitempty"`
}

type ShopSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
}

type ShopStatus struct {
	ObservedGeneration int64 `json:"observedGeneration"`
	Ready              int32 `json:"ready"`
}

// ShopList is a page of shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

func (s *Shop) DeepCopyObject() runtime.Object {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (l *ShopList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Shop, len(l.Items))
	for place := range l.Items {
		copied.Items[place] = *l.Items[place].DeepCopyObject().(*Shop)
	}
	return &copied
}

func addShops(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(shops, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(scheme, shops)
}
