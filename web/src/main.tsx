import './styles/library.css';
import './styles/theme.css';
import './styles/layout.css';
import './styles/components.css';
import { createStore } from 'jotai';
import { startTransition, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { arrival } from './api/problem';
import { App } from './App';
import { Portal } from './state/portal';

const store = createStore();
const root = createRoot(document.getElementById('root')!);
startTransition(() =>
  root.render(
    <StrictMode>
      <App store={store} portal={new Portal(store, arrival())} />
    </StrictMode>,
  ),
);
