{{/* The name of all objects: the release's, with "-pictor" unless that is in it. */}}
{{- define "pictor.name" -}}
{{- contains "pictor" .Release.Name | ternary .Release.Name (printf "%s-pictor" .Release.Name) | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "pictor.selector" -}}
app.kubernetes.io/name: pictor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pictor.labels" -}}
{{ include "pictor.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Seconds of a time such as 10s or 1m. */}}
{{- define "pictor.seconds" -}}
{{- $number := regexFind "^[0-9]+" . | int }}
{{- hasSuffix "m" . | ternary (mul $number 60) $number }}
{{- end }}

{{/* Whole cores of the CPU request, at least one: Pictor counts those of the node. */}}
{{- define "pictor.cores" -}}
{{- $cpu := dig "requests" "cpu" "1" .Values.resources | toString }}
{{- max 1 (hasSuffix "m" $cpu | ternary (divf (trimSuffix "m" $cpu) 1000) (float64 $cpu) | ceil) }}
{{- end }}

{{/* pictor.json5: what follows from other values, and over it .Values.settings. JSON is JSON5. */}}
{{- define "pictor.settings" -}}
{{- $cores := include "pictor.cores" . | int }}
{{- $size := trimSuffix "Gi" .Values.cache.size | int }}
{{- $derived := dict
  "server" (dict "address" "0.0.0.0" "operator_address" "0.0.0.0:9090" "workers" $cores)
  "disk" (dict "path" "/var/cache/pictor/images" "limit" (printf "%dGiB" (div (mul $size 9) 10)))
  "imaging" (dict "workers" $cores)
  "log" (dict "format" "json") }}
{{- with .Values.secret.adminTokenKey }}
{{- $token := dict "name" "operator" "token" (printf "file:/run/secrets/pictor/%s" .) }}
{{- $_ := set $derived "admin" (dict "tokens" (list $token)) }}
{{- end }}
{{- with .Values.secret.signingKeyKey }}
{{- $_ := set $derived "signing" (dict "mode" "required" "keys" (list (printf "main:file:/run/secrets/pictor/%s" .))) }}
{{- end }}
{{- mergeOverwrite $derived (deepCopy .Values.settings) | toPrettyJson }}
{{- end }}
