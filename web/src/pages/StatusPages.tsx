import { Button, Loader } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { Page } from '../components/Page';
import { ProblemAlert } from '../components/ProblemAlert';
import { usePortal } from '../state/portal';

/** While it is not known yet what to show; after a moment it says what is waited for. */
export function Opening({ says = 'Loading…' }: { says?: string }) {
  return (
    <div className="middle" role="status">
      <Loader size="sm" color="gray" />
      <p className="quiet soon">{says}</p>
    </div>
  );
}

/** Where the portal itself does not answer. */
export function Unreachable({ why }: { why: string }) {
  return (
    <main className="middle">
      <title>No answer · Paved Road</title>
      <h1>The portal does not answer</h1>
      <p role="alert">{why}</p>
      <p className="small">Retrying automatically.</p>
      <Button variant="default" onClick={() => window.location.reload()}>
        Retry now
      </Button>
    </main>
  );
}

/**
 * For whoever is signed in and may do nothing here: perhaps they are another here than they should
 * be.
 */
export function Forbidden({ error }: { error: unknown }) {
  const portal = usePortal();
  const [failed, setFailed] = useState<unknown>();
  return (
    <main className="middle">
      <title>Not allowed · Paved Road</title>
      <h1>You do not have access to this portal</h1>
      <div className="narrow stack">
        <ProblemAlert title="Access denied" error={error} again={() => window.location.reload()} />
        {failed !== undefined && <ProblemAlert title="Could not sign you out" error={failed} />}
      </div>
      <Button variant="default" onClick={() => void portal.signOut().catch(setFailed)}>
        Sign out
      </Button>
    </main>
  );
}

/** Where a path leads nowhere. */
export function NotFound() {
  return (
    <Page title="Page not found" lead="The link may be incomplete.">
      <Button component={Link} href="/">
        Go to my environments
      </Button>
    </Page>
  );
}
