package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var widgets = schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: "widgets"}

type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type Part struct {
	Name     string            `json:"name"`
	Image    string            `json:"image"`
	Replicas int64             `json:"replicas"`
	Settings []Setting         `json:"settings,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	Message            string `json:"message"`
	LastTransitionTime string `json:"lastTransitionTime"`
}

type WidgetSpec struct {
	NodeName string `json:"nodeName"`
	Parts    []Part `json:"parts,omitempty"`
}

type WidgetStatus struct {
	ObservedGeneration int64       `json:"observedGeneration,omitempty"`
	Conditions         []Condition `json:"conditions,omitempty"`
}

type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	twin := &Widget{TypeMeta: w.TypeMeta, Spec: WidgetSpec{NodeName: w.Spec.NodeName}}
	w.ObjectMeta.DeepCopyInto(&twin.ObjectMeta)
	for _, part := range w.Spec.Parts {
		part.Settings = append([]Setting(nil), part.Settings...)
		marks := make(map[string]string, len(part.Labels))
		for name, value := range part.Labels {
			marks[name] = value
		}
		part.Labels = marks
		twin.Spec.Parts = append(twin.Spec.Parts, part)
	}
	twin.Status = WidgetStatus{w.Status.ObservedGeneration, append([]Condition(nil), w.Status.Conditions...)}
	return twin
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	twin := &WidgetList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&twin.ListMeta)
	for place := range l.Items {
		twin.Items = append(twin.Items, *l.Items[place].DeepCopyObject().(*Widget))
	}
	return twin
}

func typedWidgets(config *rest.Config) cache.SharedIndexInformer {
	group := widgets.GroupVersion()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(group, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, group)
	typed := rest.CopyConfig(config)
	typed.GroupVersion = &group
	typed.APIPath = "/apis"
	typed.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(typed)
	check(err)
	source := cache.NewListWatchFromClient(client, "widgets", "", fields.Everything())
	return cache.NewSharedIndexInformer(source, &Widget{}, 0, cache.Indexers{})
}
