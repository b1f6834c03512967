"""The built-in kinds of Kubernetes v1.36.4, generated; import the module of the group you need.

    from konverge.k8s.apps.v1 import Deployment

This package itself imports nothing. The modules are:

- `konverge.k8s.admissionregistration.v1`: The API admissionregistration.k8s.io/v1
- `konverge.k8s.apiextensions.v1`: The API apiextensions.k8s.io/v1
- `konverge.k8s.apiregistration.v1`: The API apiregistration.k8s.io/v1
- `konverge.k8s.apps.v1`: The API apps/v1
- `konverge.k8s.authentication.v1`: The API authentication.k8s.io/v1
- `konverge.k8s.authorization.v1`: The API authorization.k8s.io/v1
- `konverge.k8s.autoscaling.v1`: The API autoscaling/v1
- `konverge.k8s.autoscaling.v2`: The API autoscaling/v2
- `konverge.k8s.batch.v1`: The API batch/v1
- `konverge.k8s.certificates.v1`: The API certificates.k8s.io/v1
- `konverge.k8s.coordination.v1`: The API coordination.k8s.io/v1
- `konverge.k8s.core.v1`: The API v1
- `konverge.k8s.discovery.v1`: The API discovery.k8s.io/v1
- `konverge.k8s.events.v1`: The API events.k8s.io/v1
- `konverge.k8s.flowcontrol.v1`: The API flowcontrol.apiserver.k8s.io/v1
- `konverge.k8s.meta.v1`: Types shared by all APIs
- `konverge.k8s.networking.v1`: The API networking.k8s.io/v1
- `konverge.k8s.node.v1`: The API node.k8s.io/v1
- `konverge.k8s.policy.v1`: The API policy/v1
- `konverge.k8s.rbac.v1`: The API rbac.authorization.k8s.io/v1
- `konverge.k8s.resource.v1`: The API resource.k8s.io/v1
- `konverge.k8s.scheduling.v1`: The API scheduling.k8s.io/v1
- `konverge.k8s.storage.v1`: The API storage.k8s.io/v1

Attributes are in snake case. Lists and maps are empty when absent; other optional fields are None.
A `status` is never None, and neither is a `spec` without required fields.
"""
