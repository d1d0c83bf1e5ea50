{{- /*
Puts a component's values into the spec of its pods, in place.

Of a dict: `pod`, the spec; `values`, of the component; `all`, the values of the chart.
*/ -}}
{{- define "kcga.fill" -}}
{{- $container := first .pod.containers }}
{{- with .values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- with .all.imagePullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- with .all.imagePullSecrets }}{{ $_ := set $.pod "imagePullSecrets" . }}{{ end }}
{{- $_ := mergeOverwrite .pod (deepCopy (default dict .values.pod)) }}
{{- end }}
