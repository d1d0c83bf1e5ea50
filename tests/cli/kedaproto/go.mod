module kcga/tests/cli/kedaproto

go 1.19

// How KEDA asks external scalers.
require github.com/kedacore/keda/v2 v2.21.0
