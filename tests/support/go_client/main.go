// A client with one credential: prints who the server says it is, and how many pods it sees.
//
// Called as: client <server> <CA file> token <file>, or client <server> <CA file> certificate <file> <key file>.
package main

import (
	"context"
	"fmt"
	"os"

	authenticationv1 "k8s.io/api/authentication/v1"
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
	_, err = client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
