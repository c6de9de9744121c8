{{/* Names are cut so that the longest ending, -rootcause, fits into 63 characters. */}}
{{- define "smidgen.name" -}}
{{- $name := ternary .Release.Name (printf "%s-smidgen" .Release.Name) (contains "smidgen" .Release.Name) -}}
{{- trunc 50 $name | trimSuffix "-" -}}
{{- end }}

{{/* Labels by which objects are selected; they never change. */}}
{{- define "smidgen.selector" -}}
app.kubernetes.io/name: smidgen
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "smidgen.labels" -}}
{{ include "smidgen.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The consumer group of .stage, as pipeline/settings/topics.py names it. */}}
{{- define "smidgen.group" -}}
{{- with .root.Values -}}
{{ .groupPrefix | default (printf "%ssmidgen-" .topicPrefix) }}{{ $.stage }}
{{- end -}}
{{- end }}

{{- define "smidgen.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "smidgen.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "smidgen.name" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{/* The topics as they are in force, with the partitions of shards, as JSON; who reads them says the packaged file. */}}
{{- define "smidgen.topics" -}}
{{- $packaged := .Files.Get "files/topics.yaml" | fromYaml -}}
{{- $own := $packaged -}}
{{- if .Values.topics -}}
{{- $own = .Values.topics | fromYaml -}}
{{- range $name, $_ := $packaged -}}
{{- if not (hasKey $own $name) -}}{{- fail (printf "topics: has no %s" $name) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $shards := $own.shards | default dict -}}
{{- $hosts := 0 -}}
{{- range $_, $count := $shards -}}{{- $hosts = add $hosts (int $count) -}}{{- end -}}
{{- $found := dict -}}
{{- range $name, $topic := $packaged -}}
{{- $mine := get $own $name -}}
{{- $more := 0 -}}
{{- if hasPrefix "service/" $topic.key -}}
{{- $more = $hosts -}}
{{- else if and (eq $topic.key "service") (not (has "outside" $topic.writers)) -}}
{{- $more = len $shards -}}
{{- end -}}
{{- $_ := set $found $name (dict "name" (printf "%s%s" $.Values.topicPrefix $mine.name) "partitions" (add (int $mine.partitions) $more) "readers" $topic.readers) -}}
{{- end -}}
{{- $found | toJson -}}
{{- end }}

{{/* How many pods of a stage can have work: the partitions of its largest input. */}}
{{- define "smidgen.partitions" -}}
{{- $most := 0 -}}
{{- range $_, $topic := include "smidgen.topics" .root | fromJson -}}
{{- if has $.stage $topic.readers -}}{{- $most = max $most (int $topic.partitions) -}}{{- end -}}
{{- end -}}
{{- $most -}}
{{- end }}

{{/* The most pods that a stage is scaled to. */}}
{{- define "smidgen.maxReplicas" -}}
{{- $bound := include "smidgen.partitions" . | int -}}
{{- $stage := get .root.Values.stages .stage -}}
{{- $given := $stage.maxReplicas | default .root.Values.autoscaling.maxReplicas -}}
{{- if and $stage.maxReplicas (gt (int $stage.maxReplicas) $bound) -}}
{{- fail (printf "stages.%s.maxReplicas: %d pods, but its input has %d partitions" .stage (int $stage.maxReplicas) $bound) -}}
{{- end -}}
{{- $most := ternary (min $bound (int $given)) $bound (not (empty $given)) -}}
{{- if lt (int $most) (int .root.Values.autoscaling.minReplicas) -}}
{{- fail (printf "autoscaling.minReplicas: more than the %d pods that %s can use" (int $most) .stage) -}}
{{- end -}}
{{- $most -}}
{{- end }}

{{/* Files of the ConfigMap: name and text. */}}
{{- define "smidgen.files" -}}
{{- range $name, $text := .Values.workloadFiles }}
{{ $name }}: {{ $text | quote }}
{{- end }}
{{- range $name, $text := .Values.settingFiles }}
{{ $name }}.yaml: {{ $text | quote }}
{{- end }}
{{- with .Values.topics }}
topics.yaml: {{ . | quote }}
{{- end }}
{{- if .Values.alerts.enabled }}
alerts.yaml: {{ required "alerts.rules: what goes to whom (docs/alerts.md)" .Values.alerts.rules | quote }}
{{- end }}
{{- end }}

{{/* The keys of the Secret, as JSON, that every pod reads; oidc_secret is of the dashboard alone, for it signs sessions. */}}
{{- define "smidgen.secretKeys" -}}
{{- without (include "smidgen.allSecretKeys" . | fromJsonArray) "oidc_secret" | toJson -}}
{{- end }}

{{- define "smidgen.allSecretKeys" -}}
{{- if .Values.existingSecret }}{{ .Values.existingSecretKeys | toJson }}{{ else }}{{ keys .Values.secrets | sortAlpha | toJson }}{{ end -}}
{{- end }}

{{/* Passwords and tokens, and the user's name for KEDA, which takes it from a Secret alone. */}}
{{- define "smidgen.secrets" -}}
{{- range $key, $secret := .Values.secrets }}
{{ $key }}: {{ $secret | b64enc }}
{{- end }}
{{- with .Values.sasl.username }}
sasl_username: {{ . | b64enc }}
{{- end }}
{{- end }}

{{- define "smidgen.hasSecret" -}}
{{- if or .Values.secrets .Values.sasl.username }}true{{ end -}}
{{- end }}

{{/* The environment of every container; .keys are those of its Secret. */}}
{{- define "smidgen.environment" -}}
{{- $values := .root.Values -}}
- {name: SMIDGEN_BROKER, value: {{ $values.broker | quote }}}
- {name: SMIDGEN_STORE, value: {{ .store | quote }}}
{{- if ne $values.brokerSecurity "plaintext" }}
- {name: SMIDGEN_BROKER_SECURITY, value: {{ $values.brokerSecurity }}}
{{- end }}
{{- if .username }}
- {name: SMIDGEN_SASL_MECHANISM, value: {{ $values.sasl.mechanism }}}
- {name: SMIDGEN_SASL_USERNAME, value: {{ .username | quote }}}
{{- end }}
{{- range $setting, $file := dict "BROKER_CA" $values.tls.brokerCa "BROKER_CERT" $values.tls.brokerCert "BROKER_KEY" $values.tls.brokerKey }}
{{- with $file }}
- {name: SMIDGEN_{{ $setting }}, value: /run/smidgen/tls/{{ . }}}
{{- end }}
{{- end }}
{{- range .keys }}
- {name: SMIDGEN_{{ upper . }}_FILE, value: /run/smidgen/secrets/{{ . }}}
{{- end }}
{{- if $values.topics }}
- {name: SMIDGEN_TOPICS, value: /etc/smidgen/topics.yaml}
{{- end }}
{{- with $values.topicPrefix }}
- {name: SMIDGEN_TOPIC_PREFIX, value: {{ . | quote }}}
{{- end }}
{{- with $values.groupPrefix }}
- {name: SMIDGEN_GROUP_PREFIX, value: {{ . | quote }}}
{{- end }}
{{- range $name, $_ := $values.settingFiles }}
- {name: SMIDGEN_{{ upper $name }}, value: /etc/smidgen/{{ $name }}.yaml}
{{- end }}
{{- if $values.workloads }}
{{- $found := list }}
{{- range $values.workloads }}
{{- $found = append $found (ternary (printf "/etc/smidgen/%s" .) . (hasKey $values.workloadFiles .)) }}
{{- end }}
- {name: SMIDGEN_WORKLOADS, value: {{ join "," $found | quote }}}
{{- end }}
- {name: SMIDGEN_LOG_FORMAT, value: {{ $values.logFormat }}}
{{- range $key, $value := $values.settings }}
- {name: SMIDGEN_{{ upper $key }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{- define "smidgen.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "smidgen.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* .secret and .config are names, empty for none; .keys are those of the Secret that are mounted. */}}
{{- define "smidgen.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .config }}
- {name: config, mountPath: /etc/smidgen, readOnly: true}
{{- end }}
{{- if and .secret .keys }}
- {name: secrets, mountPath: /run/smidgen/secrets, readOnly: true}
{{- end }}
{{- if .root.Values.tls.existingSecret }}
- {name: tls, mountPath: /run/smidgen/tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "smidgen.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .root.Values.temporarySpace }}}
{{- if .config }}
- name: config
  configMap: {name: {{ .config }}}
{{- end }}
{{- if and .secret .keys }}
- name: secrets
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      {{- range .keys }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- with .root.Values.tls.existingSecret }}
- name: tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* What every pod has besides its containers: .own are the values of its part, .graceSeconds its time to end. */}}
{{- define "smidgen.pod" -}}
serviceAccountName: {{ include "smidgen.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false # their variables may begin with SMIDGEN_, too
terminationGracePeriodSeconds: {{ .graceSeconds }}
securityContext: {{- include "smidgen.podSecurity" .root | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .own.nodeSelector | default .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.tolerations | default .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .own.affinity | default .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "smidgen.selector" (dict "root" .root "component" .component) | nindent 8 }}
{{- end }}

{{/* Labels and annotations of a pod of .component. */}}
{{- define "smidgen.podMetadata" -}}
labels:
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "smidgen.labels" . | nindent 2 }}
annotations: # a process reads files at its start; of secrets no hash is shown, for it could be guessed
  checksum/config: {{ include "smidgen.files" .root | sha256sum }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
