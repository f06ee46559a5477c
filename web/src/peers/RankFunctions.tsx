import { useRunQuery, type Params, type RankFunctions as Answer } from '../api/index.ts';
import { Failure, Waiting } from '../ui/index.ts';
import { RankFunctionTable } from './SlowTables.tsx';

/** The functions of selected ranks or GPUs with the most time. */
export function RankFunctions({ select }: { select: Params }) {
  const result = useRunQuery<Answer>('ranks/functions', select, { every: 4000 });
  if (!result.data) {
    if (result.problem) return <Failure problem={result.problem} retry={result.refresh} />;
    return <Waiting label="loading the functions" lines={4} />;
  }
  if (result.data.functions.length === 0) return null;
  return <RankFunctionTable functions={result.data.functions} />;
}
