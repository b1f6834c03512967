// The shop operator of the benchmark on controller-runtime; see bench/bench_controller.py.
//
// Called as: controller-runtime <update|apply> [workers]. The cluster is that of KUBECONFIG; SHOP_RESYNC is how many
// seconds after a reconcile an object is looked at again, 0 for never; SHOP_STAMPS is a file that the start of each
// reconcile goes to.
package main

import (
	"os"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	check(clientscheme.AddToScheme(scheme))
	addShops(scheme)
	config := ctrl.GetConfigOrDie()
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	check(err)
	resync, err := strconv.ParseFloat(os.Getenv("SHOP_RESYNC"), 64)
	check(err)
	reconciler := &ShopReconciler{
		Client: manager.GetClient(),
		resync: time.Duration(resync * float64(time.Second)),
		stamps: openStamps(),
		apply:  os.Args[1] == "apply",
	}
	workers := 8
	if len(os.Args) > 2 {
		workers, err = strconv.Atoi(os.Args[2])
		check(err)
	}
	check(ctrl.NewControllerManagedBy(manager).
		For(&Shop{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
