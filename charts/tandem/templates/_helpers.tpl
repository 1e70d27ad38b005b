{{/* The name of all objects of the operator. */}}
{{- define "tandem.fullname" -}}
{{- $base := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) (contains .Chart.Name .Release.Name) -}}
{{- printf "%s-operator" ($base | trunc 54 | trimSuffix "-") -}}
{{- end }}

{{/* Labels that never change: pipelines' NetworkPolicies let the operator in by name and component. */}}
{{- define "tandem.selectorLabels" -}}
app.kubernetes.io/name: tandem
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "tandem.labels" -}}
{{ include "tandem.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tandem.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "tandem.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed if serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{/* The reference of an image: (list . "operator"). */}}
{{- define "tandem.image" -}}
{{- $root := index . 0 -}}
{{- $images := $root.Values.images -}}
{{- printf "%s/%s:%s" $images.registry (index $images (index . 1)) ($images.tag | default $root.Chart.AppVersion) -}}
{{- end }}

{{/* A container's security context: the Pod Security Standard `restricted`, and stricter. */}}
{{- define "tandem.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "tandem.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/*
What the operator may do where its pipelines are. Nobody can grant what he may not do himself, so
what it grants to splits (pods, the intent, the register) is among it.
*/}}
{{- define "tandem.rules" -}}
- apiGroups: [tandem.dev]
  resources: [streampipelines]
  verbs: [get, list, watch]
- apiGroups: [tandem.dev]
  resources: [streampipelines/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch, delete]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, update]
- apiGroups: [apps]
  resources: [deployments, replicasets]
  verbs: [get, list, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, create, patch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, create, update, delete]
{{- end }}
