import { Button, Loader } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import { Page } from '../components/Page';
import { ProblemAlert } from '../components/ProblemAlert';
import { usePortal } from '../state/portal';

/** Shown while data loads. The message appears after a moment. */
export function Opening({ says = 'Loading…' }: { says?: string }) {
  return (
    <div className="middle" role="status">
      <Loader size="sm" color="gray" />
      <p className="quiet soon">{says}</p>
    </div>
  );
}

/** Shown while the portal does not respond. */
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
 * For a signed-in user without any permission. The user may be signed in with the wrong account.
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

/** Shown for an unknown path. */
export function NotFound() {
  return (
    <Page title="Page not found" lead="The link may be incomplete.">
      <div className="buttons">
        <Button component={Link} href="/">
          Go to my environments
        </Button>
      </div>
    </Page>
  );
}
