package main

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ShopReconciler keeps a Deployment and a Service for each shop.
type ShopReconciler struct {
	client.Client
	resync time.Duration
	stamps *os.File
	apply  bool
}

func (r *ShopReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
	var shop Shop
	if err := r.Get(ctx, request.NamespacedName, &shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.stamp(&shop, began)
	keep := r.update
	if r.apply {
		keep = r.applyAll
	}
	ready, err := keep(ctx, &shop)
	if err != nil {
		return ctrl.Result{}, err
	}
	wanted := ShopStatus{ObservedGeneration: shop.Generation, Ready: ready}
	if shop.Status != wanted {
		shop.Status = wanted
		if err := r.Status().Update(ctx, &shop); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: r.resync}, nil
}

// Reads from the cache, writes what differs.
func (r *ShopReconciler) update(ctx context.Context, shop *Shop) (int32, error) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: shop.Name, Namespace: shop.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		fillDeployment(deployment, shop)
		return controllerutil.SetControllerReference(shop, deployment, r.Scheme())
	})
	if err != nil {
		return 0, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: shop.Name, Namespace: shop.Namespace}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		fillService(service, shop)
		return controllerutil.SetControllerReference(shop, service, r.Scheme())
	})
	return deployment.Status.ReadyReplicas, err
}

func labelsOf(shop *Shop) map[string]string {
	return map[string]string{"app.kubernetes.io/name": shop.Name, "app.kubernetes.io/managed-by": "shop-operator"}
}

// Sets only what is wanted, so that the server's defaults stay and are no difference.
func fillDeployment(deployment *appsv1.Deployment, shop *Shop) {
	labels := labelsOf(shop)
	deployment.Labels = labels
	deployment.Spec.Replicas = &shop.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template := &deployment.Spec.Template
	template.Labels = labels
	if len(template.Spec.Containers) == 0 {
		template.Spec.Containers = []corev1.Container{{Name: "web"}}
	}
	container := &template.Spec.Containers[0]
	container.Image = shop.Spec.Image
	if len(container.Ports) == 0 {
		container.Ports = []corev1.ContainerPort{{Name: "http"}}
	}
	container.Ports[0].ContainerPort = 8080
}

func fillService(service *corev1.Service, shop *Shop) {
	service.Labels = labelsOf(shop)
	service.Spec.Selector = labelsOf(shop)
	if len(service.Spec.Ports) == 0 {
		service.Spec.Ports = []corev1.ServicePort{{Name: "http"}}
	}
	service.Spec.Ports[0].Port = 80
	service.Spec.Ports[0].TargetPort = intstr.FromString("http")
}

func openStamps() *os.File {
	file, err := os.OpenFile(os.Getenv("SHOP_STAMPS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	return file
}

func (r *ShopReconciler) stamp(shop *Shop, began time.Time) {
	_, err := fmt.Fprintf(r.stamps, "%s %d %.6f\n", shop.Name, shop.Generation, float64(began.UnixMicro())/1e6)
	check(err)
}
