module kcga/tests/kubernetes/prometheusoperator

go 1.19

// What the Prometheus operator takes: its definitions of resources.
require github.com/prometheus-operator/prometheus-operator v0.85.0
