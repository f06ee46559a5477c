/** The label of an anomaly's status. */
export function statusLabel(status: string): string {
  return status === 'promoted' ? 'found at the end' : status;
}
