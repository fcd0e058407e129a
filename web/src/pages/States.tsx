import { Button, Loader } from '@mantine/core';
import { Link } from 'wouter';
import { Page } from '../parts/Page';

/** While it is not known yet what to show. */
export function Opening() {
  return (
    <div className="middle" role="status">
      <Loader size="sm" color="gray" />
      <span className="unseen">Loading…</span>
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
      <p className="small">Another attempt is made by itself, again and again.</p>
      <Button variant="default" onClick={() => window.location.reload()}>
        Try now
      </Button>
    </main>
  );
}

/** Where a path leads nowhere. */
export function Nothing() {
  return (
    <Page title="There is nothing here" lead="The address leads nowhere: perhaps it was cut off on its way.">
      <Button component={Link} href="/">
        To my environments
      </Button>
    </Page>
  );
}
