// Files of PyTorch's profiler for tests.
import { mkdirSync, writeFileSync } from 'node:fs';

const steps = 24;
const stepTime = 20_000; // microseconds

/**
 * Writes a training of some ranks, a file for each. A step of 20 ms has ten kernels, a collective operation that
 * overlaps the last one, and a memory copy. The host of rank 2 launches late in step 17, and the clock of rank r is
 * r × 100 µs ahead.
 */
export function writeTraining(dir: string, ranks: number): void {
  mkdirSync(dir, { recursive: true });
  for (let rank = 0; rank < ranks; rank++)
    writeFileSync(
      `${dir}/rank${rank}.pt.trace.json`,
      JSON.stringify({
        schemaVersion: 1,
        distributedInfo: { backend: 'nccl', rank, world_size: ranks },
        displayTimeUnit: 'ms',
        baseTimeNanoseconds: 1_700_000_000_000_000_000,
        traceEvents: events(rank, ranks),
      }),
    );
}

function events(rank: number, ranks: number): object[] {
  const list: object[] = [
    { ph: 'M', name: 'process_name', pid: 100 + rank, tid: 0, args: { name: 'python' } },
    { ph: 'M', name: 'thread_name', pid: 100 + rank, tid: 1, args: { name: 'thread 1 (python)' } },
    { ph: 'M', name: 'process_labels', pid: 0, tid: 0, args: { labels: 'GPU 0' } },
  ];
  let correlation = 1;
  const call = (cat: string, name: string, ts: number, dur: number, args: object = {}) =>
    list.push({ ph: 'X', cat, name, pid: 100 + rank, tid: 1, ts: ts + 100 * rank, dur, args });
  const launch = (cat: string, name: string, at: number, start: number, dur: number, more = {}) => {
    const id = correlation++;
    call('cuda_runtime', cat === 'gpu_memcpy' ? 'cudaMemcpyAsync' : 'cudaLaunchKernel', at, 8, {
      correlation: id,
    });
    const stream = name.startsWith('nccl') ? 20 : 7;
    list.push({
      ...{ ph: 'X', cat, name, pid: 0, tid: stream, ts: start + 100 * rank, dur },
      args: { device: 0, stream, correlation: id, ...more },
    });
  };
  for (let step = 0; step < steps; step++) {
    const begin = 1000 + step * stepTime;
    const late = rank === 2 && step === 17 ? 8000 : 0;
    call('user_annotation', `ProfilerStep#${step}`, begin, stepTime - 100);
    launch('gpu_memcpy', 'Memcpy HtoD (Pageable -> Device)', begin + 50, begin + 70, 300, {
      bytes: 1 << 20,
    });
    for (let k = 0; k < 10; k++) {
      const at = begin + 400 + k * 500 + (k > 4 ? late : 0);
      call('cpu_op', 'aten::mm', at, 40);
      const grid = { grid: [128, 1, 1], block: [256, 1, 1] };
      launch('kernel', 'gemm_kernel', at + 10, at + 30, 450, grid);
    }
    const at = begin + 5000 + late;
    launch('kernel', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', at, at + 50, 9000 - late, {
      'Collective name': 'allreduce',
      'In msg nelems': 6_553_600,
      'Out msg nelems': 6_553_600,
      'Group size': ranks,
      'Process Group Name': '0',
      dtype: 'Float',
    });
  }
  return list;
}
