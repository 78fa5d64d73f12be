// Dense linear algebra and random numbers for the page without a server. Matrices are Float64Array, row by row.

const INVERSE_ITERATIONS = 3;
// Largest residual of an eigenvector of the tridiagonal form, relative to the norm.
const MAX_RESIDUAL = 1e-14;

// Eigenvalues of a symmetric matrix in ascending order, and unit eigenvectors, one per row. Householder reduction
// to tridiagonal form and the implicit QL method; A is overwritten.
export function eigh(A, n) {
  const [d, e] = [new Float64Array(n), new Float64Array(n)];
  reduce(A, n, d, e);
  accumulate(A, n, d, e);
  diagonal(A, n, d, e);
  const order = Array.from(d.keys()).sort((i, j) => d[i] - d[j]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, to) => vectors.set(A.subarray(from * n, (from + 1) * n), to * n));
  return { values: Float64Array.from(order, (i) => d[i]), vectors };
}

// All eigenvalues of a symmetric matrix in ascending order, and the unit eigenvectors of the first ones, as many as
// `count` says when it is given the eigenvalues: those of the tridiagonal form by inverse iteration. Null if they are not
// as accurate as those of `eigh`; A is overwritten.
export function lowest(A, n, count) {
  const [h, e] = [new Float64Array(n), new Float64Array(n)];
  reduce(A, n, h, e);
  e[0] = 0;
  const diag = Float64Array.from({ length: n }, (_, i) => A[i * n + i]);
  const values = diag.slice();
  diagonal(null, n, values, e.slice());
  values.sort();
  const many = count(values);
  const vectors = new Float64Array(many * n);
  const norm = Math.max(Math.abs(values[0]), Math.abs(values[n - 1])) || 1;
  const rand = random(1);
  for (let j = 0, shift = -Infinity; j < many; j++) {
    const x = vectors.subarray(j * n, (j + 1) * n);
    for (let i = 0; i < n; i++) x[i] = rand() - 0.5;
    // Shifts of equal eigenvalues differ a little, as in LAPACK's dstein.
    shift = Math.max(values[j], shift + 10 * Number.EPSILON * norm);
    for (let again = 0; again < INVERSE_ITERATIONS; again++) {
      solveTridiagonal(diag, e, shift, x, Number.EPSILON * norm);
      orthogonal(x, vectors, j, n);
    }
    for (let i = 0; i < n; i++) {
      const r = diag[i] * x[i] + (i ? e[i] * x[i - 1] : 0) + (i + 1 < n ? e[i + 1] * x[i + 1] : 0) - values[j] * x[i];
      if (!(Math.abs(r) <= MAX_RESIDUAL * norm)) return null;
    }
  }
  // The reflections of the reduction, in turn, lead back from the tridiagonal form.
  for (let j = 0; j < many; j++) {
    const x = vectors.subarray(j * n, (j + 1) * n);
    for (let i = 1; i < n; i++) {
      if (h[i] === 0) continue;
      let g = 0;
      for (let k = 0; k < i; k++) g += A[i * n + k] * x[k];
      g /= h[i];
      for (let k = 0; k < i; k++) x[k] -= g * A[i * n + k];
    }
  }
  return { values, vectors };
}

// x := (T - shift)^-1 x up to its length, by elimination with row exchanges; pivots are at least `least`.
function solveTridiagonal(diag, off, shift, x, least) {
  const n = x.length;
  const [main, up, far] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  let [pivot, right] = [diag[0] - shift, n > 1 ? off[1] : 0];
  for (let i = 0; i + 1 < n; i++) {
    const below = off[i + 1];
    const here = diag[i + 1] - shift;
    const next = i + 2 < n ? off[i + 2] : 0;
    if (Math.abs(pivot) >= Math.abs(below)) {
      if (Math.abs(pivot) < least) pivot = least;
      const f = below / pivot;
      [main[i], up[i], far[i]] = [pivot, right, 0];
      x[i + 1] -= f * x[i];
      pivot = here - f * right;
      right = next;
    } else {
      const f = pivot / below;
      [main[i], up[i], far[i]] = [below, here, next];
      [x[i], x[i + 1]] = [x[i + 1], x[i] - f * x[i + 1]];
      pivot = right - f * here;
      right = -f * next;
    }
  }
  main[n - 1] = Math.abs(pivot) < least ? least : pivot;
  let top = 0;
  for (let i = n - 1; i >= 0; i--) {
    x[i] = (x[i] - (i + 1 < n ? up[i] * x[i + 1] : 0) - (i + 2 < n ? far[i] * x[i + 2] : 0)) / main[i];
    top = Math.max(top, Math.abs(x[i]));
  }
  for (let i = 0; i < n; i++) x[i] /= top;
}

// Make x a unit vector orthogonal to the first `many` rows; twice, since once leaves rounding errors.
function orthogonal(x, rows, many, n) {
  for (let again = 0; again < 2; again++) {
    for (let j = 0; j < many; j++) {
      let g = 0;
      for (let i = 0; i < n; i++) g += rows[j * n + i] * x[i];
      for (let i = 0; i < n; i++) x[i] -= g * rows[j * n + i];
    }
  }
  let size = 0;
  for (let i = 0; i < n; i++) size += x[i] * x[i];
  size = Math.sqrt(size);
  for (let i = 0; i < n; i++) x[i] /= size;
}

// Row i of V becomes the reflection of step i, with h in d; the diagonal of T stays in V, beside it is e.
function reduce(V, n, d, e) {
  for (let j = 0; j < n; j++) d[j] = V[j * n + n - 1];
  for (let i = n - 1; i > 0; i--) {
    let [scale, h] = [0, 0];
    for (let k = 0; k < i; k++) scale += Math.abs(d[k]);
    if (scale === 0) {
      e[i] = d[i - 1];
      for (let j = 0; j < i; j++) {
        d[j] = V[j * n + i - 1];
        V[j * n + i] = 0;
        V[i * n + j] = 0;
      }
    } else {
      for (let k = 0; k < i; k++) {
        d[k] /= scale;
        h += d[k] * d[k];
      }
      let f = d[i - 1];
      let g = f > 0 ? -Math.sqrt(h) : Math.sqrt(h);
      e[i] = scale * g;
      h -= f * g;
      d[i - 1] = f - g;
      e.fill(0, 0, i);
      for (let j = 0; j < i; j++) {
        const row = j * n;
        f = d[j];
        V[i * n + j] = f;
        g = e[j] + V[row + j] * f;
        for (let k = j + 1; k < i; k++) {
          g += V[row + k] * d[k];
          e[k] += V[row + k] * f;
        }
        e[j] = g;
      }
      f = 0;
      for (let j = 0; j < i; j++) {
        e[j] /= h;
        f += e[j] * d[j];
      }
      const half = f / (h + h);
      for (let j = 0; j < i; j++) e[j] -= half * d[j];
      for (let j = 0; j < i; j++) {
        const row = j * n;
        f = d[j];
        g = e[j];
        for (let k = j; k < i; k++) V[row + k] -= f * e[k] + g * d[k];
        d[j] = V[row + i - 1];
        V[row + i] = 0;
      }
    }
    d[i] = h;
  }
}

// Row j of V is column j of the transformation: so the inner loops run along rows.
function accumulate(V, n, d, e) {
  for (let i = 0; i < n - 1; i++) {
    const next = (i + 1) * n;
    V[i * n + n - 1] = V[i * n + i];
    V[i * n + i] = 1;
    const h = d[i + 1];
    if (h !== 0) {
      for (let k = 0; k <= i; k++) d[k] = V[next + k] / h;
      for (let j = 0; j <= i; j++) {
        const row = j * n;
        let g = 0;
        for (let k = 0; k <= i; k++) g += V[next + k] * V[row + k];
        for (let k = 0; k <= i; k++) V[row + k] -= g * d[k];
      }
    }
    V.fill(0, next, next + i + 1);
  }
  for (let j = 0; j < n; j++) {
    d[j] = V[j * n + n - 1];
    V[j * n + n - 1] = 0;
  }
  V[n * n - 1] = 1;
  e[0] = 0;
}

// Eigenvalues of the tridiagonal form into d, and rows of V turned along, unless V is null.
function diagonal(V, n, d, e) {
  for (let i = 1; i < n; i++) e[i - 1] = e[i];
  e[n - 1] = 0;
  let [f, top] = [0, 0];
  for (let l = 0; l < n; l++) {
    top = Math.max(top, Math.abs(d[l]) + Math.abs(e[l]));
    let m = l;
    while (m < n - 1 && Math.abs(e[m]) > Number.EPSILON * top) m++;
    while (m > l) {
      let g = d[l];
      let p = (d[l + 1] - g) / (2 * e[l]);
      let r = p < 0 ? -Math.hypot(p, 1) : Math.hypot(p, 1);
      d[l] = e[l] / (p + r);
      d[l + 1] = e[l] * (p + r);
      const after = d[l + 1];
      let h = g - d[l];
      for (let i = l + 2; i < n; i++) d[i] -= h;
      f += h;
      p = d[m];
      let [c, c2, c3, s, s2] = [1, 1, 1, 0, 0];
      const second = e[l + 1];
      for (let i = m - 1; i >= l; i--) {
        c3 = c2;
        c2 = c;
        s2 = s;
        g = c * e[i];
        h = c * p;
        r = Math.hypot(p, e[i]);
        e[i + 1] = s * r;
        s = e[i] / r;
        c = p / r;
        p = c * d[i] - s * g;
        d[i + 1] = h + s * (c * g + s * d[i]);
        const [a, b] = [i * n, (i + 1) * n];
        for (let k = 0; V && k < n; k++) {
          const x = V[b + k];
          const y = V[a + k];
          V[b + k] = s * y + c * x;
          V[a + k] = c * y - s * x;
        }
      }
      p = (-s * s2 * c3 * second * e[l]) / after;
      e[l] = s * p;
      d[l] = c * p;
      if (Math.abs(e[l]) <= Number.EPSILON * top) break;
    }
    d[l] += f;
    e[l] = 0;
  }
}

// Inverse by Gauss-Jordan elimination with row exchanges; A is overwritten. Null if A is singular.
export function inverse(A, n) {
  const B = new Float64Array(n * n);
  for (let i = 0; i < n; i++) B[i * n + i] = 1;
  for (let i = 0; i < n; i++) {
    let best = i;
    for (let r = i + 1; r < n; r++) if (Math.abs(A[r * n + i]) > Math.abs(A[best * n + i])) best = r;
    if (!Math.abs(A[best * n + i])) return null;
    if (best !== i) for (const M of [A, B]) exchange(M, n, i, best);
    const unit = 1 / A[i * n + i];
    for (let k = 0; k < n; k++) {
      A[i * n + k] *= unit;
      B[i * n + k] *= unit;
    }
    for (let r = 0; r < n; r++) {
      const f = A[r * n + i];
      if (r === i || f === 0) continue;
      for (let k = i; k < n; k++) A[r * n + k] -= f * A[i * n + k];
      for (let k = 0; k < n; k++) B[r * n + k] -= f * B[i * n + k];
    }
  }
  return B;
}

function exchange(M, n, i, j) {
  const row = M.slice(i * n, (i + 1) * n);
  M.copyWithin(i * n, j * n, (j + 1) * n);
  M.set(row, j * n);
}

// Solution of the small system G x = b, by elimination with row exchanges; both are overwritten.
export function solveSmall(G, b) {
  const n = b.length;
  for (let i = 0; i < n; i++) {
    let best = i;
    for (let r = i + 1; r < n; r++) if (Math.abs(G[r][i]) > Math.abs(G[best][i])) best = r;
    [G[i], G[best]] = [G[best], G[i]];
    [b[i], b[best]] = [b[best], b[i]];
    for (let r = i + 1; r < n; r++) {
      const f = G[r][i] / G[i][i];
      if (f === 0) continue;
      for (let k = i; k < n; k++) G[r][k] -= f * G[i][k];
      b[r] -= f * b[i];
    }
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) b[i] -= G[i][k] * b[k];
    b[i] /= G[i][i];
  }
  return b;
}

// Random numbers in [0, 1) from a seed (mulberry32).
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
