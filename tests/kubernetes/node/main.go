// What a node has of its own in one program: kubelet, kube-proxy, CoreDNS, and what holds a pod's namespaces while its
// containers come and go. It runs the part that its first argument names, with that part's own flags.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	if len(os.Args) < 2 {
		fail("which part? kubelet, kube-proxy, coredns or pause")
	}
	part := os.Args[1]
	os.Args = os.Args[1:]
	switch part {
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "coredns":
		coremain.Run()
	case "pause":
		pause()
	default:
		fail(fmt.Sprintf("there is no part %q", part))
	}
}

func pause() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
}

func fail(reason string) {
	fmt.Fprintln(os.Stderr, "node:", reason)
	os.Exit(2)
}
