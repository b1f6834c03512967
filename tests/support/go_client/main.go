// A client with one credential: prints who the server says it is, asks for its rights as operators do at their start,
// and lists pods. It exits when it may not list them.
//
// Called as: client <server> <CA file> token <file>, or client <server> <CA file> certificate <file> <key file>.
package main

import (
	"context"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	config := &rest.Config{Host: os.Args[1], TLSClientConfig: rest.TLSClientConfig{CAFile: os.Args[2]}}
	if os.Args[3] == "token" {
		config.BearerTokenFile = os.Args[4]
	} else {
		config.CertFile, config.KeyFile = os.Args[4], os.Args[5]
	}
	client, err := kubernetes.NewForConfig(config)
	check(err)
	ctx, reviews := context.Background(), authenticationv1.SelfSubjectReview{}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &reviews, metav1.CreateOptions{})
	check(err)
	fmt.Println(review.Status.UserInfo.Username, review.Status.UserInfo.Groups)
	check(mayListPods(ctx, client))
	rules := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	own, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, rules, metav1.CreateOptions{})
	check(err)
	fmt.Println(len(own.Status.ResourceRules) > 0, own.Status.Incomplete)
	other := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:anonymous", ResourceAttributes: listPods,
	}}
	decision, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, other, metav1.CreateOptions{})
	check(err)
	fmt.Println(decision.Status.Allowed)
	_, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
}

var listPods = &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Resource: "pods"}

func mayListPods(ctx context.Context, client kubernetes.Interface) error {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: listPods},
	}
	found, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err == nil && !found.Status.Allowed {
		err = fmt.Errorf("missing the right to list pods")
	}
	return err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
