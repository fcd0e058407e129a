//! What stands below the flags of the commands that talk to a cluster.

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    usage: a bad flag, an unreadable file, a name that does not exist
  2    refused by the API server: every reason is printed
  3    refused by the composition: the spec or the platform's settings are invalid
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or does not let you
  130  ended by Ctrl-C or SIGTERM";

pub(super) const APPLY_HELP: &str = "\
Examples:
  paved apply claim.yaml                      create or change an environment
  paved apply claim.yaml --wait               and wait until it is ready, or has failed
  paved apply claims/ --dry-run=server        ask the API server, change nothing
  paved apply claim.yaml --diff               show what changes before it does

Exit codes:
  0    done
  1    usage: a bad flag, a file that is unreadable or no YAML
  2    refused by the API server, or a field belongs to another manager: nothing is applied
  3    refused by the composition: the spec or the platform's settings are invalid; nothing is applied, unless the
       cluster's own function said so while it was waited for
  4    provisioning failed
  5    timed out
  6    no access: the cluster does not answer, or does not let you
  130  ended by Ctrl-C or SIGTERM: what was begun is done, unless a second one ended that";

pub(super) const WAIT_HELP: &str = "\
Examples:
  paved wait ada                              until it is ready
  paved wait ada grace --timeout 1h           until both are
  paved wait stockpool/ada --for=deleted
  paved wait ada --for=condition=Provisioned
  paved wait ada --output-file ada.env        and write what it has become for the next step

Exit codes:
  0    it is as it should be
  1    usage: a bad flag, a name that does not exist
  3    refused by the composition: the spec or the platform's settings are invalid
  4    provisioning failed: a part was refused and nothing has moved for --patience, or it is being deleted
  5    timed out
  6    no access: the cluster does not answer, or does not let you
  130  ended by Ctrl-C or SIGTERM";

pub(super) const DOCTOR_HELP: &str = "\
Exit codes:
  0    this cluster can serve environments, and you may ask for them
  1    usage: a bad flag
  4    something is broken: the lines with ✗ say what, and what to do
  6    no access: the cluster does not answer, or does not let you
  130  ended by Ctrl-C or SIGTERM";
