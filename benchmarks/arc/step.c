// The step of docs/arc/operations.md, operations 0-34, by hand: one world after another, one real
// branch an operation, cells as bytes. Not part of the library: it shows what the processor could
// do, as the ceiling of a benchmark. `ceiling.py` builds it and compares it with the library.
//
// A row of a grid is 32 bytes, 30 of them cells; padding holds -1, so that an observation is a copy.
// A set of cells is a word of bits a row.

#include <stdint.h>
#include <string.h>

#define SIDE 30
#define ROW 32
#define GRID (SIDE * ROW)
#define MAX_STEPS 100

typedef struct {
    int8_t cells[GRID];
    int32_t height, width;
} Grid;

typedef struct {
    Grid grid;
    int8_t clip[GRID];
    uint32_t clip_rows[SIDE];
    int32_t clip_height;
    int32_t pair, steps;
    float similarity;
    uint64_t dice;
} World;

typedef struct {
    Grid input, output;
} Pair;

typedef struct {
    int32_t first, demos;  // its demonstration pairs
} Task;

typedef struct {
    int32_t operation;
    uint32_t rows[SIDE];  // the selection, padding cells too
    int32_t first, last;  // rows without a selected cell above `first` and from `last` on
} Action;

typedef struct {
    int32_t top, bottom, left, right;
} Box;

int32_t size_of_world(void) { return sizeof(World); }

static inline uint32_t bits_below(int32_t n) { return n >= 32 ? ~0u : (1u << n) - 1; }

static Box box_of(const uint32_t *rows, int32_t first, int32_t last) {
    uint32_t any = 0;
    Box box = {0, 0, 0, 0};
    while (first < last && !rows[first]) first++;
    while (last > first && !rows[last - 1]) last--;
    if (first == last) return box;
    for (int32_t r = first; r < last; r++) any |= rows[r];
    box.top = first, box.bottom = last;
    box.left = __builtin_ctz(any), box.right = 32 - __builtin_clz(any);
    return box;
}

static inline void paint(int8_t *row, uint32_t bits, int8_t colour) {
    for (int32_t c = 0; c < ROW; c++) row[c] = (bits >> c) & 1 ? colour : row[c];
}

static inline void blend(int8_t *row, uint32_t bits, const int8_t *from) {
    for (int32_t c = 0; c < ROW; c++) row[c] = (bits >> c) & 1 ? from[c] : row[c];
}

// The bits of the cells that have a colour, eight cells at a time.
static inline uint32_t match(const int8_t *row, int8_t colour) {
    uint32_t bits = 0;
    for (int32_t c = 0; c < ROW; c += 8) {
        uint64_t eight, ones = 0x0101010101010101u;
        memcpy(&eight, row + c, 8);
        eight ^= ones * (uint8_t)colour;  // 0 where equal; cells are -1 ... 9
        eight |= eight >> 4;
        eight |= eight >> 2;
        eight |= eight >> 1;
        eight = ~eight & ones;
        bits |= (uint32_t)((eight * 0x0102040810204080u) >> 56) << c;
    }
    return bits;
}

// All cells of the runs in `open` that hold a cell of `seed`: a carry goes up each run, and runs
// are short, so doubling shifts go down.
static inline uint32_t along_runs(uint32_t seed, uint32_t open) {
    uint32_t filled = seed | (((open + seed) ^ open) & open), path = open;
    for (int32_t shift = 1; shift < 32; shift <<= 1) {
        filled |= path & (filled >> shift);
        path &= path >> shift;
    }
    return filled;
}

static void flood(Grid *grid, int32_t row, int32_t column, int8_t colour) {
    uint32_t open[SIDE], filled[SIDE] = {0};
    int32_t height = grid->height, low = row, high = row + 1, changed = 1;
    int8_t own = grid->cells[row * ROW + column];
    if (own == colour) return;
    for (int32_t r = 0; r < height; r++) open[r] = match(grid->cells + r * ROW, own);
    filled[row] = along_runs(1u << column, open[row]);
    while (changed) {
        changed = 0;
        for (int32_t r = low; r < height; r++) {
            uint32_t seed = (filled[r] | (r > low ? filled[r - 1] : 0)) & open[r];
            uint32_t now = seed ? along_runs(seed, open[r]) : 0;
            changed |= now != filled[r];
            filled[r] = now;
            if (now) high = r + 1 > high ? r + 1 : high;
            else if (r >= high) break;
        }
        for (int32_t r = high - 1; r >= 0; r--) {
            uint32_t seed = (filled[r] | (r + 1 < high ? filled[r + 1] : 0)) & open[r];
            uint32_t now = seed ? along_runs(seed, open[r]) : 0;
            changed |= now != filled[r];
            filled[r] = now;
            if (now) low = r < low ? r : low;
            else if (r < low) break;
        }
    }
    for (int32_t r = low; r < high; r++) paint(grid->cells + r * ROW, filled[r], colour);
}

static void move(Grid *grid, const uint32_t *cells, Box box, int32_t down, int32_t right) {
    int8_t lifted[GRID + 2 * ROW];  // a row more on either side, for reads one cell off
    int8_t *from = lifted + ROW;
    uint32_t inside = bits_below(grid->width);
    memcpy(from + box.top * ROW, grid->cells + box.top * ROW, (box.bottom - box.top) * ROW);
    for (int32_t r = box.top; r < box.bottom; r++) paint(grid->cells + r * ROW, cells[r], 0);
    for (int32_t r = box.top; r < box.bottom; r++) {
        int32_t to = r + down;
        uint32_t bits = right > 0 ? cells[r] << 1 : right < 0 ? cells[r] >> 1 : cells[r];
        if (to < 0 || to >= grid->height) continue;
        blend(grid->cells + to * ROW, bits & inside, from + r * ROW - right);
    }
}

static void rotate(Grid *grid, Box box, int32_t clockwise) {
    int8_t block[GRID];
    int32_t h = box.bottom - box.top, w = box.right - box.left;
    for (int32_t r = 0; r < h; r++) {
        int8_t *row = grid->cells + (box.top + r) * ROW + box.left;
        memcpy(block + r * ROW, row, w);
        memset(row, 0, w);
    }
    int32_t rows = w < grid->height - box.top ? w : grid->height - box.top;
    int32_t columns = h < grid->width - box.left ? h : grid->width - box.left;
    for (int32_t r = 0; r < rows; r++) {
        int8_t *row = grid->cells + (box.top + r) * ROW + box.left;
        for (int32_t c = 0; c < columns; c++)
            row[c] = clockwise ? block[(h - 1 - c) * ROW + r] : block[c * ROW + w - 1 - r];
    }
}

static void flip(Grid *grid, Box box, int32_t rows_too) {
    int8_t row[ROW];
    int32_t w = box.right - box.left;
    if (rows_too) {
        for (int32_t a = box.top, b = box.bottom - 1; a < b; a++, b--) {
            int8_t *one = grid->cells + a * ROW + box.left, *two = grid->cells + b * ROW + box.left;
            memcpy(row, one, w);
            memcpy(one, two, w);
            memcpy(two, row, w);
        }
        return;
    }
    for (int32_t r = box.top; r < box.bottom; r++) {
        int8_t *cells = grid->cells + r * ROW + box.left;
        memcpy(row, cells, w);
        for (int32_t c = 0; c < w; c++) cells[c] = row[w - 1 - c];
    }
}

static void copy(World *world, const uint32_t *cells, Box box) {
    world->clip_height = box.bottom - box.top;
    for (int32_t r = 0; r < world->clip_height; r++) {
        world->clip_rows[r] = cells[box.top + r] >> box.left;
        memcpy(world->clip + r * ROW, world->grid.cells + (box.top + r) * ROW + box.left,
               box.right - box.left);
    }
}

static void paste(World *world, Box box) {
    Grid *grid = &world->grid;
    int8_t row[2 * ROW];
    uint32_t inside = bits_below(grid->width);
    for (int32_t r = 0; r < world->clip_height && box.top + r < grid->height; r++) {
        memcpy(row + box.left, world->clip + r * ROW, ROW);
        blend(grid->cells + (box.top + r) * ROW, (world->clip_rows[r] << box.left) & inside, row);
    }
}

static void resize(Grid *grid, int32_t height, int32_t width) {
    for (int32_t r = 0; r < SIDE; r++) {
        int8_t *row = grid->cells + r * ROW;
        if (r >= height) {
            memset(row, -1, ROW);
            continue;
        }
        int32_t kept = r >= grid->height ? 0 : grid->width < width ? grid->width : width;
        memset(row + kept, 0, width - kept);
        memset(row + width, -1, ROW - width);
    }
    grid->height = height, grid->width = width;
}

static void apply(World *world, const Action *action, const Pair *pair) {
    Grid *grid = &world->grid;
    int32_t operation = action->operation;
    if (operation == 31) {
        for (int32_t r = 0; r < grid->height; r++) memset(grid->cells + r * ROW, 0, grid->width);
        return;
    }
    if (operation == 32) {
        *grid = pair->input;
        return;
    }
    if (operation == 33) {
        Box reach = box_of(action->rows, action->first, action->last);
        if (reach.bottom) resize(grid, reach.bottom, reach.right);
        return;
    }
    if (operation < 0 || operation > 30) return;
    uint32_t cells[SIDE], inside = bits_below(grid->width);
    int32_t last = action->last < grid->height ? action->last : grid->height;
    for (int32_t r = action->first; r < last; r++) cells[r] = action->rows[r] & inside;
    if (action->first >= last) return;
    Box box = box_of(cells, action->first, last);
    if (!box.bottom) return;
    if (operation < 10) {
        for (int32_t r = box.top; r < box.bottom; r++)
            paint(grid->cells + r * ROW, cells[r], operation);
    } else if (operation < 20) {
        flood(grid, box.top, __builtin_ctz(cells[box.top]), operation - 10);
    } else if (operation < 24) {
        static const int32_t down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
        move(grid, cells, box, down[operation - 20], right[operation - 20]);
    } else if (operation < 26) {
        rotate(grid, box, operation == 24);
    } else if (operation < 28) {
        flip(grid, box, operation == 27);
    } else if (operation == 29) {
        paste(world, box);
    } else {
        copy(world, cells, box);
        if (operation == 30)
            for (int32_t r = box.top; r < box.bottom; r++)
                paint(grid->cells + r * ROW, cells[r], 0);
    }
}

// Similarity of a grid and its target; 1 only for the same shape and the same cells.
static float compare(const Grid *grid, const Grid *target, int32_t *exact) {
    int32_t height = grid->height < target->height ? grid->height : target->height;
    int32_t width = grid->width < target->width ? grid->width : target->width;
    int32_t agree = 0;
    for (int32_t r = 0; r < height; r++) {
        const int8_t *a = grid->cells + r * ROW, *b = target->cells + r * ROW;
        int8_t same = 0;  // a row has 32 cells at most
        for (int32_t c = 0; c < ROW; c++) same += a[c] == b[c] && a[c] >= 0;
        agree += same;
    }
    int32_t either =
        grid->height * grid->width + target->height * target->width - height * width;
    *exact = agree == either;
    return (float)agree / either;
}

static inline uint64_t roll(uint64_t *dice) {  // splitmix64
    uint64_t z = *dice += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int32_t below(uint64_t *dice, int32_t limit) {
    return (int32_t)(((roll(dice) >> 32) * limit) >> 32);
}

// kind: 0 point, 1 box, 2 mask.
static void draw(uint64_t *dice, int32_t kind, Action *action) {
    action->operation = below(dice, 35);
    if (kind == 2) {
        action->first = 0, action->last = SIDE;
        for (int32_t r = 0; r < SIDE; r += 2) {
            uint64_t two = roll(dice);
            action->rows[r] = (uint32_t)two & bits_below(SIDE);
            action->rows[r + 1] = (uint32_t)(two >> 32) & bits_below(SIDE);
        }
        return;
    }
    int32_t r1 = below(dice, SIDE), c1 = below(dice, SIDE), r2 = r1, c2 = c1;
    if (kind == 1) {
        int32_t r = below(dice, SIDE), c = below(dice, SIDE);
        r1 = r < r1 ? r : r1, r2 = r > r2 ? r : r2;
        c1 = c < c1 ? c : c1, c2 = c > c2 ? c : c2;
    }
    action->first = r1, action->last = r2 + 1;
    uint32_t bits = bits_below(c2 + 1) & ~bits_below(c1);
    for (int32_t r = r1; r <= r2; r++) action->rows[r] = bits;
}

static void begin(World *world, const Pair *pairs, const Task *tasks, int32_t count) {
    int32_t exact;
    const Task *task = tasks + below(&world->dice, count);
    world->pair = task->first + below(&world->dice, task->demos);
    world->grid = pairs[world->pair].input;
    world->clip_height = 0;
    world->steps = 0;
    world->similarity = compare(&world->grid, &pairs[world->pair].output, &exact);
}

static void step(World *world, int32_t kind, const Pair *pairs, const Task *tasks, int32_t count,
                 float *reward, uint8_t *ended, int8_t *observation) {
    Action action;
    int32_t exact;
    const Pair *pair = pairs + world->pair;
    draw(&world->dice, kind, &action);
    apply(world, &action, pair);
    float similarity = compare(&world->grid, &pair->output, &exact);
    int32_t submitted = action.operation == 34;
    *reward = similarity - world->similarity + (exact ? 10.0f : 0.0f) - 0.01f;
    world->similarity = similarity;
    world->steps++;
    *ended = submitted || exact ? 1 : world->steps >= MAX_STEPS ? 2 : 0;
    if (*ended) begin(world, pairs, tasks, count);
    for (int32_t r = 0; r < SIDE; r++)
        memcpy(observation + r * SIDE, world->grid.cells + r * ROW, SIDE);
}

void start(World *worlds, int32_t batch, const Pair *pairs, const Task *tasks, int32_t count,
           uint64_t seed) {
    for (int32_t b = 0; b < batch; b++) {
        worlds[b].dice = seed + 0x632be59bd9b4e019u * (b + 1);
        begin(worlds + b, pairs, tasks, count);
    }
}

// `length` steps of every world; rewards and ends of every step, and the observation of the last.
// Each thread has a share of the worlds to itself and waits for nobody.
void rollout(World *worlds, int32_t batch, int32_t length, int32_t kind, const Pair *pairs,
             const Task *tasks, int32_t count, float *rewards, uint8_t *ends, int8_t *observations,
             int32_t threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int32_t share = 0; share < threads; share++) {
        int32_t low = (int64_t)batch * share / threads;
        int32_t high = (int64_t)batch * (share + 1) / threads;
        for (int32_t t = 0; t < length; t++)
            for (int32_t b = low; b < high; b++)
                step(worlds + b, kind, pairs, tasks, count, rewards + (int64_t)t * batch + b,
                     ends + (int64_t)t * batch + b, observations + (int64_t)b * SIDE * SIDE);
    }
}

// Given operations on given selections, without rewards and resets: for comparison.
void edit(World *worlds, int32_t batch, const int32_t *operations, const uint32_t *selections,
          const Pair *pairs) {
    for (int32_t b = 0; b < batch; b++) {
        Action action = {.operation = operations[b], .first = 0, .last = SIDE};
        memcpy(action.rows, selections + b * SIDE, sizeof action.rows);
        apply(worlds + b, &action, pairs + worlds[b].pair);
    }
}
