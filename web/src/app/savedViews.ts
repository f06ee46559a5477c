/** An address under a name. */
export interface SavedView {
  name: string;
  /** From the # on, without the run. */
  at: string;
}

const key = 'chimbuko.views';

/** Reads the saved views of this browser. */
export function readViews(): readonly SavedView[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(v: unknown): v is SavedView {
  const { name, at } = (v ?? {}) as Partial<SavedView>;
  return typeof name === 'string' && typeof at === 'string' && at.startsWith('#/');
}

/** Stores the saved views. */
export function storeViews(views: readonly SavedView[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(views));
  } catch {
    // Storage is forbidden: they last until the page is left.
  }
}
