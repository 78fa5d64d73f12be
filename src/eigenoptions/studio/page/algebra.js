// Dense linear algebra and random numbers. Matrices are Float64Array, row by row.

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

// Eigenvalues of the tridiagonal form into d; rows of V are rotated along.
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
        for (let k = 0; k < n; k++) {
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
