import { ActionIcon, Button, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import type { ReactNode } from 'react';
import { Link, useRoute } from 'wouter';
import { words } from '../api/problem';
import { tellAtom } from '../state/notices';
import { usePortal } from '../state/portal';
import { meAtom } from '../state/session';
import { Arrivals } from './Arrivals';
import { DocsLinks } from './DocsLinks';
import { Icon } from './Icon';
import { LineBanner } from './LineBanner';
import { Notices } from './Notices';

/** The header, banner and notices around every page. */
export function Frame({ children }: { children: ReactNode }) {
  return (
    <div className="frame">
      <header className="bar">
        <a className="skip" href="#content">
          Skip to content
        </a>
        <Brand />
        <nav className="nav" aria-label="Pages">
          <Tab to="/">Environments</Tab>
          <Tab to="/operations">Operations</Tab>
          <Tab to="/keys">SSH keys</Tab>
        </nav>
        <div className="who">
          <Scheme />
          <Who />
        </div>
      </header>
      <LineBanner />
      <main id="content" className="content" tabIndex={-1}>
        {children}
      </main>
      <DocsLinks />
      <Arrivals />
      <Notices />
    </div>
  );
}

export function Brand() {
  return (
    <Link className="brand" href="/">
      <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false">
        <rect width="32" height="32" rx="7" className="ground" />
        <path d="M13 6h6l5 20H8z" className="road" />
        <path d="M15.3 8h1.4v4h-1.4zm0 6.5h1.4V19h-1.4zm0 7h1.4V26h-1.4z" className="ground" />
      </svg>
      <span>Paved Road</span>
    </Link>
  );
}

function Tab({ to, children }: { to: string; children: string }) {
  const [exact] = useRoute(to);
  const [below] = useRoute('/environments/*?');
  const here = exact || (to === '/' && below);
  return (
    <Link href={to} className="tab" aria-current={here ? 'page' : undefined}>
      {children}
    </Link>
  );
}

const SCHEMES: Record<
  MantineColorScheme,
  { next: MantineColorScheme; icon: 'system' | 'sun' | 'moon'; says: string }
> = {
  auto: { next: 'light', icon: 'system', says: 'system' },
  light: { next: 'dark', icon: 'sun', says: 'light' },
  dark: { next: 'auto', icon: 'moon', says: 'dark' },
};

function Scheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  const { next, icon, says } = SCHEMES[colorScheme];
  const label = `Theme: ${says}. Switch to ${SCHEMES[next].says}`;
  return (
    <ActionIcon
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={label}
      title={label}
      onClick={() => setColorScheme(next)}
    >
      <Icon name={icon} />
    </ActionIcon>
  );
}

function Who() {
  const me = useAtomValue(meAtom);
  const portal = usePortal();
  const tell = useSetAtom(tellAtom);
  if (!me) return null;
  const out = () => {
    portal
      .signOut()
      .catch((error: unknown) =>
        tell({ tone: 'bad', title: 'Could not sign you out everywhere', detail: words(error) }),
      );
  };
  return (
    <>
      <span
        className="login"
        title={me.groups.length > 0 ? `Groups: ${me.groups.join(', ')}` : undefined}
      >
        {me.login}
      </span>
      {me.credential === 'session' && (
        <Button variant="subtle" color="gray" size="compact-sm" onClick={out}>
          Sign out
        </Button>
      )}
    </>
  );
}
