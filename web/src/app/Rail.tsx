import type { ReactNode } from 'react';
import { useHref, useRoute, views, type View } from '../route/index.ts';
import { nothing } from '../sql/index.ts';
import {
  CompareIcon,
  EvidenceIcon,
  FunctionsIcon,
  FindingsIcon,
  OverviewIcon,
  PipelineIcon,
  RanksIcon,
  SqlIcon,
} from './icons.tsx';

/** Names of the views. */
export const viewNames: Readonly<Record<View, string>> = {
  overview: 'Overview',
  findings: 'Findings',
  evidence: 'Evidence',
  functions: 'Functions',
  pipeline: 'Pipeline',
  compare: 'Compare',
  ranks: 'Ranks',
};

const icons: Readonly<Record<View, () => ReactNode>> = {
  overview: OverviewIcon,
  findings: FindingsIcon,
  evidence: EvidenceIcon,
  functions: FunctionsIcon,
  pipeline: PipelineIcon,
  compare: CompareIcon,
  ranks: RanksIcon,
};

/** Navigation to the views. */
export function Rail() {
  const route = useRoute();
  const href = useHref();
  return (
    <nav className="rail" aria-label="Views">
      <a className="skip" href={href({})} onClick={focusMain}>
        Skip to content
      </a>
      <ul>
        {views.map((view, i) => {
          const Icon = icons[view];
          return (
            <li key={view}>
              <a
                href={href({ view })}
                aria-current={route.view === view ? 'page' : undefined}
                title={`${viewNames[view]} (${i + 1})`}
              >
                <Icon />
                <span>{viewNames[view]}</span>
              </a>
            </li>
          );
        })}
      </ul>
      <div className="rail-drawers">
        <a href={href({ query: { sql: nothing } })} title="Query with SQL (`)">
          <SqlIcon />
          <span>SQL</span>
        </a>
      </div>
    </nav>
  );
}

function focusMain(event: { preventDefault: () => void }): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
