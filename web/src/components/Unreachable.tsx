import { Button } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, api } from '../api/client';
import { words } from '../api/problem';
import type { Environment } from '../api/schema';
import { placeOf } from '../kinds/paths';
import { tellAtom } from '../state/notices';
import { meAtom } from '../state/session';

/** The network of one address. */
export function networkOf(address: string | null | undefined): string | undefined {
  return address ? `${address}/${address.includes(':') ? 128 : 32}` : undefined;
}

/** SSH is closed. One click allows the user's own address. */
export function Closed({ environment }: { environment: Environment }) {
  const network = networkOf(useAtomValue(meAtom)?.address);
  const tell = useSetAtom(tellAtom);
  const [asking, setAsking] = useState(false);
  const path = placeOf(environment);
  const allow = async () => {
    setAsking(true);
    try {
      await answer(
        api.PATCH('/api/v1/environments/{namespace}/{kind}/{name}', {
          params: { path },
          // No network is allowed, so the list replaces none.
          body: { spec: { parameters: { allowedCidrs: [network] } } },
          headers: { 'Content-Type': 'application/merge-patch+json' },
        }),
      );
      tell({ tone: 'good', title: `SSH from ${network} is being allowed` });
    } catch (error) {
      tell({ tone: 'bad', title: 'Could not allow your address', detail: words(error) });
    } finally {
      setAsking(false);
    }
  };
  return (
    <div className="note">
      <p>
        SSH is closed: no network is allowed. Until then, the command opens an AWS session. You can
        also set <Link href="?tab=change">Change › Allowed CIDRs</Link>.
      </p>
      {network && (
        <Button size="compact-sm" variant="default" loading={asking} onClick={() => void allow()}>
          Allow my address ({network})
        </Button>
      )}
    </div>
  );
}

/** The machine has no SSH key. Keys are fixed at its creation. */
export function Keyless() {
  return (
    <div className="note">
      <p>
        No SSH key: connect by AWS Session Manager. To use SSH, add your key to
        ~/.ssh/authorized_keys in a session.
      </p>
      <Button component={Link} href="/keys" size="compact-sm" variant="default">
        Add a key for new workspaces
      </Button>
    </div>
  );
}
