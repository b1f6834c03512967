// Informers of client-go, measured from inside: dynamic (unstructured) and typed, both over JSON.
//
// Called as: client-go <dynamic|typed> <kubeconfig> <pods|widgets> <count> [stripped]. Prints one line of JSON; what each
// figure means is said in bench/bench_cache.py. Stripped drops managedFields before an object is kept, as a careful
// author does; the default of informers is to keep them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	sort, kubeconfig, what := os.Args[1], os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	check(err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	check(err)
	config.ContentType = "application/json"
	config.AcceptContentTypes = "application/json"
	config.QPS, config.Burst = 1000, 1000

	informer := informerFor(sort, what, config)
	check(informer.AddIndexers(cache.Indexers{"node": nodeOf}))
	if len(os.Args) > 5 && os.Args[5] == "stripped" {
		check(informer.SetTransform(withoutManagers))
	}

	figures := measureFollowing(informer, count)
	if count > 0 {
		measureReading(informer.GetIndexer(), figures)
	}
	line, err := json.Marshal(figures)
	check(err)
	fmt.Println(string(line))
}

func informerFor(sort, what string, config *rest.Config) cache.SharedIndexInformer {
	switch {
	case sort == "dynamic":
		client, err := dynamic.NewForConfig(config)
		check(err)
		resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		if what == "widgets" {
			resource = widgets
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resource).Informer()
	case what == "pods":
		client, err := kubernetes.NewForConfig(config)
		check(err)
		return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	default:
		return typedWidgets(config)
	}
}

func measureFollowing(informer cache.SharedIndexInformer, count int) map[string]float64 {
	settle()
	base, began, cpuBefore := memory("VmRSS"), time.Now(), cpuSeconds()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || len(informer.GetStore().ListKeys()) != count {
		check(fmt.Errorf("%d objects of %d", len(informer.GetStore().ListKeys()), count))
	}
	wall, cpu := time.Since(began).Seconds(), cpuSeconds()-cpuBefore
	peak := memory("VmHWM")
	settle()
	settled := memory("VmRSS")
	return map[string]float64{"wall": wall, "cpu": cpu, "base": base, "peak": peak, "settled": settled}
}

// What a reader is handed is its own copy, as controller-runtime gives it by default.
func measureReading(store cache.Indexer, figures map[string]float64) {
	keys := store.ListKeys()
	selector := labels.SelectorFromSet(labels.Set{"app": "app-7"})
	figures["get"] = aSecond(func() {
		found, _, err := store.GetByKey(keys[rand.Intn(len(keys))])
		check(err)
		copyOf(found)
	})
	figures["list"] = aSecond(func() {
		check(cache.ListAll(store, selector, func(found any) { copyOf(found) }))
	})
	figures["index"] = aSecond(func() {
		found, err := store.ByIndex("node", "node-7")
		check(err)
		for _, one := range found {
			copyOf(one)
		}
	})
}

var sink runtime.Object

func copyOf(found any) {
	sink = found.(runtime.Object).DeepCopyObject()
}

func nodeOf(found any) ([]string, error) {
	switch one := found.(type) {
	case *corev1.Pod:
		return []string{one.Spec.NodeName}, nil
	case *Widget:
		return []string{one.Spec.NodeName}, nil
	case *unstructured.Unstructured:
		node, _, err := unstructured.NestedString(one.Object, "spec", "nodeName")
		return []string{node}, err
	}
	_, err := meta.Accessor(found)
	return nil, err
}

func withoutManagers(found any) (any, error) {
	one, err := meta.Accessor(found)
	if err == nil {
		one.SetManagedFields(nil)
	}
	return found, err
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
