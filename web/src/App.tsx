import { createTheme, MantineProvider, localStorageColorSchemeManager } from '@mantine/core';
import { Provider, useAtomValue, type createStore } from 'jotai';
import { Suspense, useEffect } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { CreatePage } from './pages/Create';
import { EnvironmentsPage } from './pages/Environments';
import { signIn, SignInPage } from './pages/SignIn';
import { Forbidden, NotFound, Opening, Unreachable } from './pages/StatusPages';
import { Boundary } from './components/Boundary';
import { Frame } from './components/Frame';
import { Loaded, onDemand, whenIdle } from './components/onDemand';
import { syncedAtom } from './state/environments';
import { PortalProvider, type Portal } from './state/portal';
import { sessionAtom } from './state/session';

const EnvironmentPage = onDemand(() => import('./pages/Environment'));
const KeysPage = onDemand(() => import('./pages/Keys'));
const OperationsPage = onDemand(() => import('./pages/Operations'));
const SessionEnded = onDemand(() => import('./pages/SessionEnded'));

/** The pages to load before the session is known, by the first segment of the URL's path. */
const FIRST = new Map<string | undefined, { load: () => Promise<void> }>([
  ['environments', EnvironmentPage],
  ['keys', KeysPage],
  ['operations', OperationsPage],
]);

/** Loads the remaining pages one after another, so that opening them needs no wait. */
async function loadRest(): Promise<void> {
  for (const one of [EnvironmentPage, SessionEnded, OperationsPage, KeysPage]) await one.load();
}

const theme = createTheme({
  primaryColor: 'teal',
  primaryShade: { light: 9, dark: 9 },
  defaultRadius: 'md',
  respectReducedMotion: true,
  fontFamily: 'var(--font)',
  headings: { fontFamily: 'var(--font)' },
  // The content security policy forbids the styles that these options would write into the page.
  components: {
    Modal: {
      defaultProps: { lockScroll: false, attributes: { header: { role: 'presentation' } } },
    },
  },
});
const scheme = localStorageColorSchemeManager({ key: 'paved-scheme' });

interface Props {
  store: ReturnType<typeof createStore>;
  portal: Portal;
}

export function App({ store, portal }: Props) {
  useEffect(() => portal.begin(), [portal]);
  useEffect(() => void FIRST.get(window.location.pathname.split('/')[1])?.load(), []);
  return (
    <Provider store={store}>
      <MantineProvider
        theme={theme}
        defaultColorScheme="auto"
        colorSchemeManager={scheme}
        withCssVariables={false}
        withGlobalClasses={false}
      >
        <PortalProvider value={portal}>
          <Gate />
        </PortalProvider>
      </MantineProvider>
    </Provider>
  );
}

/** The message that a session ended, if the dialog for it cannot be loaded. */
function Ended() {
  return (
    <p role="alert">
      Your session has ended. <a href={signIn()}>Sign in again</a> to return to this page. Your
      input is kept.
    </p>
  );
}

function Gate() {
  const session = useAtomValue(sessionAtom);
  const [location] = useLocation();
  const synced = useAtomValue(syncedAtom);
  useEffect(() => {
    // Loading starts only after the first page has its data and the browser is idle.
    if (synced) return whenIdle(() => void loadRest());
  }, [synced]);
  if (session.state === 'unknown') return <Opening says="Checking your sign-in…" />;
  if (session.state === 'unreachable') return <Unreachable why={session.why} />;
  if (session.state === 'refused') return <Forbidden error={session.error} />;
  if (session.state === 'out' && !session.me)
    return <SignInPage told={session.told} elsewhere={session.elsewhere} />;
  return (
    <Frame>
      {session.state === 'out' && (
        <Loaded fallback={null} instead={<Ended />}>
          <SessionEnded />
        </Loaded>
      )}
      <Boundary key={location} page>
        <Suspense fallback={<Opening />}>
          <Switch>
            <Route path="/" component={EnvironmentsPage} />
            <Route path="/new" component={CreatePage} />
            <Route path="/environments/:namespace/:kind/:name">
              {(params) => <EnvironmentPage params={params} />}
            </Route>
            <Route path="/keys" component={KeysPage} />
            <Route path="/operations" component={OperationsPage} />
            <Route component={NotFound} />
          </Switch>
        </Suspense>
      </Boundary>
    </Frame>
  );
}
