{{- define "worker.labels" -}}
app.kubernetes.io/name: connect-py-worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "worker.properties" -}}
{{- $fixed := dict
      "listeners" "http://:8083"
      "metrics.listeners" "http://:9404"
      "health.listeners" "http://:8085"
      "rest.advertised.host.name" (printf "${env:POD_NAME}.%s-workers" .Release.Name)
      "config.providers" "env,dir"
      "config.providers.env.class" "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
      "config.providers.env.param.allowlist.pattern" "POD_NAME"
      "config.providers.dir.class" "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
      "config.providers.dir.param.allowed.paths" "/etc/connect-secrets" }}
{{- range $key, $value := mergeOverwrite $fixed .Values.properties }}
{{ $key }}={{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end }}
