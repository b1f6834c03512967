package main

import (
	"context"

	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var asOperator = []client.ApplyOption{client.FieldOwner("shop-operator"), client.ForceOwnership}

// Applies everything each time: the server finds what differs.
func (r *ShopReconciler) applyAll(ctx context.Context, shop *Shop) (int32, error) {
	deployment := deploymentFor(shop)
	if err := r.Apply(ctx, deployment, asOperator...); err != nil {
		return 0, err
	}
	ready := int32(0)
	if deployment.Status != nil && deployment.Status.ReadyReplicas != nil {
		ready = *deployment.Status.ReadyReplicas
	}
	return ready, r.Apply(ctx, serviceFor(shop), asOperator...)
}

func deploymentFor(shop *Shop) *appsv1.DeploymentApplyConfiguration {
	labels := labelsOf(shop)
	container := corev1.Container().WithName("web").WithImage(shop.Spec.Image).
		WithPorts(corev1.ContainerPort().WithName("http").WithContainerPort(8080))
	return appsv1.Deployment(shop.Name, shop.Namespace).WithLabels(labels).WithOwnerReferences(ownerOf(shop)).
		WithSpec(appsv1.DeploymentSpec().
			WithReplicas(shop.Spec.Replicas).
			WithSelector(metav1.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1.PodTemplateSpec().WithLabels(labels).
				WithSpec(corev1.PodSpec().WithContainers(container))))
}

func serviceFor(shop *Shop) *corev1.ServiceApplyConfiguration {
	return corev1.Service(shop.Name, shop.Namespace).WithLabels(labelsOf(shop)).WithOwnerReferences(ownerOf(shop)).
		WithSpec(corev1.ServiceSpec().WithSelector(labelsOf(shop)).
			WithPorts(corev1.ServicePort().WithName("http").WithPort(80).WithTargetPort(intstr.FromString("http"))))
}

func ownerOf(shop *Shop) *metav1.OwnerReferenceApplyConfiguration {
	return metav1.OwnerReference().WithAPIVersion(shops.String()).WithKind("Shop").WithName(shop.Name).
		WithUID(shop.UID).WithController(true).WithBlockOwnerDeletion(true)
}
