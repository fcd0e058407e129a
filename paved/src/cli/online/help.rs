//! Texts below the flags of commands that need a cluster.

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    usage: a bad flag, an unreadable file, or a name that does not exist
  2    rejected by the API server, with every reason
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const APPLY_HELP: &str = "\
Examples:
  paved apply claim.yaml                      create or change an environment
  paved apply claim.yaml --wait               and wait until it is ready or has failed
  paved apply claims/ --dry-run=server        check the claims, without any change
  paved apply claim.yaml --diff               show the changes, then apply them

Exit codes:
  0    done
  1    usage: a bad flag, an unreadable file, or invalid YAML
  2    rejected by the API server, or a field belongs to another manager; no claim is applied
  3    rejected by the composition: the spec or the platform's Settings are invalid. No claim is
       applied, unless the function in the cluster rejects the spec during --wait.
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM after the current step; a second signal aborts the step";

pub(super) const DELETE_HELP: &str = "\
Without a NAME, and with --namespace written out (not -n), the command deletes the namespace. It
lists the environments and the other managed resources of the namespace, asks, deletes them, waits
until they are gone, and then deletes the namespace. If it is interrupted, run it again. Without a
terminal, it needs --yes=NAMESPACE: a plain --yes deletes no namespace.

Examples:
  paved delete ada                            delete an environment after a question
  paved delete ada gpuws/grace --yes --wait   delete two environments, and wait for the end
  paved delete --namespace team-vision        delete the namespace and everything in it

Exit codes:
  0    done
  1    usage: a bad flag, or a name that does not exist
  2    rejected by the API server, with every reason
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const WAIT_HELP: &str = "\
Examples:
  paved wait ada                              until ada is ready
  paved wait ada grace --timeout 1h           until both are ready
  paved wait stockpool/ada --for=deleted
  paved wait ada --for=condition=Provisioned
  paved wait ada --output-file ada.env        and write the outputs for the next step

Exit codes:
  0    every environment reached the goal
  1    usage: a bad flag, or a name that does not exist
  3    rejected by the composition: the spec or the platform's Settings are invalid
  4    provisioning failed: a resource is rejected and no other resource changes for --patience,
       or the environment is being deleted
  5    timed out
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";

pub(super) const DOCTOR_HELP: &str = "\
Exit codes:
  0    the cluster can serve environments, and you may create them
  1    usage: a bad flag
  4    a component is broken: each line with ✗ has the cause and the remediation
  6    no access: the cluster does not answer, or denies access
  130  stopped by Ctrl-C or SIGTERM";
