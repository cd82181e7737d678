// The engine's own sentences in Chinese: reasons of jobs, flags of files, answers of judges. The engine
// writes them in English, because agents read them; names, paths and quotations in them stay as they are.
// A third text says in plainer English what the engine says in terms of programs.

import { language, t } from './words.js';

const SENTENCES = [
  // Why a job has its state.
  [/^waits for (.+), which needs a person$/, '等待 {0}，后者需要人处理'],
  [/^waits for (.+), which has no units yet: approving (.+) declares them$/, '等待 {0}，它还没有单元：批准 {1} 会声明单元'],
  [/^waits for (.+), which has no units yet: (.+)$/, '等待 {0}，它还没有单元：{1}'],
  [/^waits for (.+), which is stale$/, '等待 {0}，后者已过时'],
  [/^waits for (.+)$/, '等待 {0}'],
  [/^sent back by (.+) \(round (\d+)\)$/, '被 {0} 退回（第 {1} 轮）'],
  [/^excused by a person$/, '由人决定不再等它'],
  [/^excused: (.+)$/s, '不再等它：{0}'],
  [/^(\d+) failures in a row: (.+)$/s, '连续失败 {0} 次：{1}', '{0} failures in a row: {1}'],
  [/^`(.+)` was not written$/, '`{0}` 没有写出'],
  [/^the agent reports: ended with exit code (\d+)$/, '智能体的程序出错而中止（退出码 {0}）', "the agent's program stopped with an error (exit code {0})"],
  [/^the agent reports: stopped early: exit code (\d+): (.+)$/, '智能体的程序出错而中止（退出码 {0}）：{1}', "the agent's program stopped with an error (exit code {0}): {1}"],
  [/^the agent reports: (.+)$/, '智能体报告：{0}'],
  [/^ended with exit code (\d+)$/, '以退出码 {0} 结束'],
  [/^`(.+)` has (\d+) words; (\d+) to (\d+) are required\. (.+)$/, '`{0}` 有 {1} 词，要求 {2} 到 {3} 词。{4}'],
  [/^to go on without it: (.+)$/, '不等它而继续：{0}'],
  [/^rejected: (.+)$/s, '已退回：{0}'],
  [/^an objection is open$/, '有未解决的异议'],
  [/^(\d+) objections?: (.+) \(after round (\d+)\)$/s, '{0} 条异议：{1}（第 {2} 轮之后）'],
  [/^(\d+) objections?: (.+); sent back to (.+)$/s, '{0} 条异议：{1}；退回给 {2}'],
  [/^(\d+) objections?: (.+)$/s, '{0} 条异议：{1}'],
  [/^fix it in an editor, or overrule it: (.+)$/, '在编辑器里改正，或驳回异议：{0}'],
  [/^(\S+) was fixed$/, '{0} 已改正'],
  [/^`(.+)` does not exist$/, '`{0}` 不存在'],
  [/^`(.+)` does not end with (.+)$/, '`{0}` 没有以 {1} 结尾'],
  [/^`(.+)` changed$/, '`{0}` 已改动'],
  [/^`(.+)` was deleted$/, '`{0}` 已删除'],
  [/^`(.+)` is new$/, '`{0}` 是新的'],
  [/^through (.+)$/, '经由 {0}'],
  [/^the text does not require it$/, '文字不需要这一步'],
  [/^a later result is already sealed$/, '后面的结果已经封存'],
  [/^(quipu approve .+?) +\(or: (quipu reject .+)\)$/, '{0}（或：{1}）'],
  // Why a file is flagged.
  [/^was removed outside Quipu$/, '在 Quipu 之外被删除'],
  [/^is sealed, but was edited outside Quipu$/, '已封存，却在 Quipu 之外被改动'],
  [/^is a record, but was edited outside Quipu$/, '是记录，创建后不再改动，却在 Quipu 之外被改动'],
  [/^is derived, but was edited outside Quipu$/, '由 Quipu 写出，却在 Quipu 之外被改动'],
  [/^is append-only, but existing text was changed outside Quipu$/, '只能在末尾追加，已有文字却在 Quipu 之外被改动'],
  [/^is (?:not|no longer) valid JSON$/, '不是有效的 JSON'],
  [/^lost (.+) in an external edit$/, '在外部改动中丢失了 {0}'],
  [/^went back to the text of commit (@\d+) in an external edit(?:, without (.+))?$/, '在外部改动中回到了提交 {0} 的文字 {1}'],
  [/^contains only zero bytes, as after a power failure$/, '只含零字节，像是断电所致'],
  [/^is not written yet: the disk is full$/, '尚未写出：磁盘已满'],
  [/^is not written yet: the disk reports errors$/, '尚未写出：磁盘报错'],
  // What a judge found.
  [/^memory says (.+), the text shows the (left|right) hand in use$/, '记忆写的是{0}，文中用的是另一只手'],
  [/^memory says (.+), the text (.+)$/s, '记忆写的是 {0}，文中是 {1}'],
  [/^memory puts (.+) before (.+)$/, '记忆中 {0} 在 {1} 之前'],
  [/^memory puts (.+) after (.+)$/, '记忆中 {0} 在 {1} 之后'],
  [/^`(.+)` must not happen here$/, '这里不该出现 `{0}`'],
  [/^`(.+)` must not be used for `(.+)`$/, '不该用 `{0}` 指 `{1}`'],
  [/^this thread was closed: (.+)$/s, '这条伏笔已经收束：{0}'],
  [/^the image that this concept has$/, '正是这个概念的意象'],
  [/^it ends before it begins: (.+)$/, '结束早于开始：{0}'],
  [/^(.+): two values of `(.+)` at one time$/, '{0}：同一时间 `{1}` 有两个值'],
  [/^(.+): born in (.+) is (.+) in (.+), not (.+)$/, '{0}：生于 {1}，在 {3} 应为 {2} 岁，而非 {4}'],
  [/^(.+): grows younger, (\d+) and then (\d+)$/, '{0}：变年轻了，先 {1} 岁，后 {2} 岁'],
  [/^(.+): (\d+) and then (\d+), but 0 years pass$/, '{0}：同一年内既是 {1} 岁又是 {2} 岁', '{0}: aged {1} and {2} within one year'],
  [/^(.+): (\d+) and then (\d+), but (\d+) years pass$/, '{0}：先 {1} 岁，后 {2} 岁，其间只过了 {3} 年'],
  [/^(.+): the injury is healed and lasts at one time$/, '{0}：伤同一时间既已痊愈又未痊愈'],
  [/^(.+) is dead, and `(.+)` begins later$/, '{0} 已死，`{1}` 却开始得更晚'],
  [/^(.+) knows it and does not know it at one time$/, '{0} 同一时间既知道又不知道'],
  [/^`(.+)` is held by (.+) and by (.+) at one time$/, '`{0}` 同一时间由 {1} 和 {2} 持有'],
];

// Why Quipu itself made a commit. A reason that a person or an agent gave is theirs and stays.
const REASONS = [
  [/^created by quipu (init|start)$/, '由 quipu {0} 创建'],
  [/^approved (\S+)$/, '已批准 {0}'],
  [/^approved (\S+): (.+)$/s, '已批准 {0}：{1}'],
  [/^rejected (\S+)$/, '已退回 {0}'],
  [/^excused (\S+)$/, '不再等待 {0}'],
  [/^excused (\S+): (.+)$/s, '不再等待 {0}：{1}'],
  [/^(\S+) by quipu run$/, '{0}，由 quipu run 完成'],
  [/^(\S+) failed$/, '{0} 失败'],
  [/^todo add (\S+): (.+)$/s, '添加待办 {0}：{1}'],
  [/^todo edit (\S+): (.+)$/s, '编辑待办 {0}：{1}'],
  [/^todo start (\S+): (.+)$/s, '开始待办 {0}：{1}'],
  [/^todo done (\S+): (.+)$/s, '完成待办 {0}：{1}'],
  [/^todo block (\S+): (.+)$/s, '待办受阻 {0}：{1}'],
  [/^todo unblock (\S+): (.+)$/s, '待办不再受阻 {0}：{1}'],
  [/^todo cancel (\S+): (.+)$/s, '取消待办 {0}：{1}'],
  [/^decide (\S+): (.+)$/s, '决定 {0}：{1}'],
  [/^derived from the reports$/, '由报告得出'],
  [/^the letter, derived from the reports$/, '审稿信，由报告得出'],
  [/^published by (.+)$/, '由 {0} 发布'],
];

function translate(text, sentences) {
  if (typeof text !== 'string') return text;
  for (const [pattern, chinese, plain] of sentences) {
    const own = language() === 'zh' ? chinese : plain;
    const found = own && pattern.exec(text);
    // A reason may hold another one.
    if (found) return own.replace(/\{(\d)\}/g, (_, nth) => translate(found[Number(nth) + 1] ?? '', sentences)).trim();
  }
  const lines = text.split('\n');
  return lines.length > 1 ? lines.map((line) => translate(line, sentences)).join('\n') : text;
}

/** Returns a sentence of the engine in the page's language; one that is not known stays as it is. */
export const said = (text) => translate(text, SENTENCES);
/** Why a commit was made. */
export const reason = (text) => translate(text, REASONS);

/** Who made a commit: the engine's own words for people and for Quipu, and names as they are. */
export function who(name) {
  if (name === 'external') return t('who.external');
  if (language() !== 'zh' || typeof name !== 'string') return name;
  const [, by, agent] = /^(.+) \((.+)\)$/.exec(name) ?? [];
  if (by) return `${who(by)}（${agent === 'rehearse' ? t('who.rehearse') : agent}）`;
  return name === 'person' ? t('who.person') : name;
}

/** One of two languages, as the server sends texts of the contract. */
export const own = (text) => (Array.isArray(text) ? text[language() === 'zh' ? 1 : 0] : text);

export { REASONS, SENTENCES };
