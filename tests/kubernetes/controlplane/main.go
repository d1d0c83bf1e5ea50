// A Kubernetes control plane, kubectl and Helm in one program: it runs the part that its first argument names, with that
// part's own flags.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	helm "helm.sh/helm/v4/pkg/cmd"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var parts = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 {
		fail("which part? etcd, key, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl or helm")
	}
	part := os.Args[1]
	os.Args = os.Args[1:]
	switch command, known := parts[part]; {
	case known:
		os.Exit(cli.Run(command()))
	case part == "etcd":
		etcdmain.Main(os.Args)
	case part == "helm":
		runHelm()
	case part == "key":
		printKey()
	default:
		fail(fmt.Sprintf("there is no part %q", part))
	}
}

func runHelm() {
	command, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		fail(err.Error())
	}
	// It says itself what went wrong.
	if command.Execute() != nil {
		os.Exit(1)
	}
}

// printKey makes the key that signs the tokens of service accounts.
func printKey() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fail(err.Error())
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		fail(err.Error())
	}
	if err := pem.Encode(os.Stdout, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der}); err != nil {
		fail(err.Error())
	}
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, "controlplane:", reason)
	os.Exit(2)
}
