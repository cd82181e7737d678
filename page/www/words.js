// Every sentence of the page, in both languages, and the switch between them.

const WORDS = {
  now: ['Now', '现在'], flow: ['Flow', '流程'], memory: ['Memory', '记忆'], graph: ['Graph', '图谱'],
  story: ['Story', '故事'], work: ['Work', '工作'], journal: ['Journal', '日志'],

  'hint.now': ['Agents work on plain files, and Quipu enforces a contract. This view shows what is running now and what needs you.', '智能体处理普通文件，Quipu 执行合约。这里显示正在进行的工作，以及需要你处理的事。'],
  'hint.flow': ['Each row is a unit, each column a step that an agent or Quipu performs for it. The table is computed from the files. Choose a cell to see its brief, what the agent read and what it wrote.', '每行是一个单元，每列是为它做的一步（由智能体或 Quipu 完成）。表格由文件计算得出。点一格，查看任务书、读到的内容和写出的内容。'],
  'hint.memory': ['The files of the project. The class of a file defines how it may change, and Quipu enforces it.', '项目的文件。类别规定文件可以怎样变，由 Quipu 强制执行。'],
  'hint.graph': ['How files refer to each other. Choose a node to see its neighbours; no link leads to an orphan; a dense file has too many links.', '文件如何互相引用。点一个节点看它的邻居；孤立者没有链接通达，过密者链接太多。'],
  'hint.story': ['What is written: contradictions, the tension on high-level facts, open threads, who is who at any chapter, what happens when, and who knows what.', '已写下的故事：矛盾之处、高层事实所受的张力、未收的伏笔、各章中的人与物、何时发生何事，以及谁知道什么。'],
  'hint.work': ['Todos, decisions and past sessions. Drag a card to change its status; this creates a commit.', '待办、决策和以往的会话。拖动卡片可改变状态；这会产生一次提交。'],
  'hint.journal': ['Every change: who, when and why. Any version can be restored.', '每一次变更：谁、何时、为何。任何版本都可以恢复。'],

  'class.sealed': ['sealed', '封存'], 'class.append': ['append', '追加'], 'class.record': ['record', '记录'],
  'class.overwrite': ['overwrite', '覆盖'], 'class.state': ['state', '状态'], 'class.derived': ['derived', '派生'],
  'class.free': ['free', '自由'], 'class.flagged': ['flagged', '有标记'], 'class.all': ['all', '全部'],
  'about.sealed': ['written once; later only a person amends it', '只写一次；之后只有人能修订'],
  'about.append': ['append-only; existing text never changes', '只在末尾增长；已有内容不变'],
  'about.record': ['created once, never changed', '创建一次，不再改动'],
  'about.overwrite': ['replaced as a whole; older versions stay in the journal', '整体替换；旧版本留在日志里'],
  'about.state': ['replaced only on the version that was read', '只能在读过的版本上替换'],
  'about.derived': ['written only by Quipu, from other files', '由 Quipu 从其他文件写出'],
  'about.free': ['not in the contract', '不在合约之内'],
  'about.flagged': ['changed outside Quipu in a way its class forbids', '在 Quipu 之外被改动，且类别不允许'],

  'state.pending': ['waits for others', '等待其他'], 'state.ready': ['ready', '可以开始'], 'state.running': ['running', '进行中'],
  'state.done': ['done', '完成'], 'state.stale': ['stale', '已过时'], 'state.failed': ['failed', '失败'],
  'state.blocked': ['blocked', '受阻'], 'state.waiting': ['waits for you', '等你决定'], 'state.skipped': ['skipped', '跳过'],

  'now.yours': ['Waits for you', '等你'], 'now.running': ['Running', '进行中'], 'now.trouble': ['Needs attention', '需要注意'],
  'now.held': ['Held', '占用'], 'now.recent': ['Last commits', '最近的提交'], 'now.progress': ['The flow', '流程'],
  'now.none.yours': ['Nothing waits for you.', '没有什么在等你。'], 'now.alldone': ['Every step is done. The results are in Memory.', '每一步都完成了。成果在“记忆”里。'], 'now.none.running': ['No agent is running.', '没有智能体在工作。'],
  'now.none.trouble': ['Nothing is stale, no link is broken, no thread is overdue, no premise gave way.', '没有过时的步骤，没有断链，没有逾期的伏笔，没有动摇的前提。'],
  'now.none.stale': ['Nothing is stale.', '没有过时的步骤。'], 'now.retry': ['To try again:', '重试：'], 'chapter.nth': ['chapter {0}', '第 {0} 章'],
  'now.blocks': ['{0} jobs wait for this', '{0} 项工作在等它'], 'and.more': ['and {0} more', '另有 {0} 个'],
  'now.nounits': ['No unit is declared yet, so these steps have nothing to do: {0}.', '还没有声明单元，因此这些步骤无事可做：{0}。'],
  'now.declares': ['Approving {0} declares the units of the plan; or write [units.ID] into quipu.toml.', '批准 {0} 会声明计划里的单元；也可以在 quipu.toml 里写 [units.ID]。'],
  'now.declare': ['Write [units.ID] into quipu.toml, one for each unit.', '在 quipu.toml 里写 [units.ID]，每个单元一个。'],
  'premise.failed': ['premise gave way', '前提已动摇'],
  'now.workers': ['Workers', '工作进程'],
  'worker.waits': ['waits for something to do', '等待可做的步骤'],
  'worker.dead': ['no heartbeat since', '无心跳，自'],
  'now.none.held': ['No leases, no open sessions.', '没有租约，没有打开的会话。'],
  'now.start': ['To continue: {0}', '继续运行：{0}'],
  'now.noflow': ['This project has no flow. Its files, work and journal are in the other views.', '这个项目没有流程。文件、工作和日志在其他视图里。'],
  approve: ['Approve', '批准'], reject: ['Reject', '退回'], 'reject.why': ['What is wrong? The next attempt receives this text.', '哪里不对？下一次尝试会收到这段文字。'],
  'reject.send': ['Send it back', '退回重做'], overrule: ['Overrule the objection', '驳回异议'], 'gate.read': ['Read first:', '先看：'],
  cancel: ['Cancel', '取消'], close: ['Close', '关闭'], lease: ['lease', '租约'], session: ['session', '会话'], until: ['until {0}', '到 {0}'],
  since: ['since {0}', '自 {0}'], release: ['Release', '释放'], 'session.over': ['considered dead', '视为已失效'],
  elapsed: ['elapsed', '用时'], agent: ['agent', '智能体'], tokens: ['tokens', '词元'], 'tokens.of': ['It read {0} tokens; its budget is {1}.', '读取 {0} 词元；预算 {1}。'],
  'with.note': ['Add a note …', '附上说明……'], 'approve.why': ['Your note. It is recorded with the decision.', '你的说明，会与决定一起记录。'], keep: ['Keep as it is', '保持原样'], excuse: ['Go on without it', '不等它，继续'],

  'flag.show': ['Show the change', '查看改动'], 'flag.change': ['Changed outside Quipu: the newest version beside the file on disk', '在 Quipu 之外的改动：最新版本与磁盘上的文件对照'], 'flag.remedy': ['On the command line:', '命令行：'],
  'flag.restore': ['Undo the change', '撤销改动'], 'flag.restore.sure': ['Undo the change of {0}?', '撤销 {0} 的改动？'], 'flag.restore.what': ['This change is undone. A copy of it stays in the journal.', '将撤销以下改动。改动的副本保留在日志里。'],
  'flag.accept': ['Accept it', '接受改动'], 'flag.accept.sure': ['Accept the change of {0}?', '接受 {0} 的改动？'], 'flag.accept.what': ['This change becomes the newest version, with your reason.', '以下改动将成为最新版本，并记下你的理由。'], 'flag.accept.why': ['Why is it right?', '为什么这样改是对的？'],
  edit: ['Edit', '编辑'], 'edit.write': ['Edit {0}', '编辑 {0}'], 'edit.append': ['Add to the end of {0}', '在 {0} 末尾追加'], 'edit.amend': ['Amend {0}', '修订 {0}'], 'edit.do.write': ['Save', '保存'], 'edit.do.append': ['Append', '追加'], 'edit.do.amend': ['Amend', '修订'],
  'edit.text': ['Text', '文字'], 'edit.why': ['Reason', '理由'], 'edit.based': ['Based on version {0}. If the file changes meanwhile, nothing is saved and your text stays here.', '基于版本 {0}。若文件在此期间被改动，则不会保存，你的文字仍留在这里。'], 'edit.ends': ['This file mixes two kinds of line ends, which a browser would change. Edit it with another program.', '此文件混用两种换行符，浏览器会改动它们。请用其他程序编辑。'],
  'file.never': ['Quipu has accepted no version of this file. What is on disk is shown above.', 'Quipu 没有接受过这个文件的任何版本。磁盘上的内容见上方。'],
  'restore.never': ['Older versions can be read, but not restored: the class of this file is {0}.', '旧版本可以阅读，但不能恢复：此文件的类别是{0}。'],
  'diff.part': ['the first {0} of {1} lines are shown', '显示前 {0} 行，共 {1} 行'],

  'flow.empty': ['No units are declared yet; declare them in quipu.toml: [units.ID].', '还没有声明单元：在 quipu.toml 里写 [units.ID]。'],
  'flow.none': ['This project has no flow. A profile with steps (book, review) has one.', '这个项目没有流程。带步骤的配置（book、review）才有。'],
  'flow.once': ['Once for the whole project', '整个项目一次'], 'flow.units': ['For each unit', '每个单元'], unit: ['unit', '单元'], step: ['step', '步骤'],
  'job.overview': ['Overview', '概况'], 'job.plan': ['What it reads', '读取内容'], 'job.brief': ['Brief', '任务书'],
  'job.transcript': ['Transcript', '对话记录'], 'job.outputs': ['Writes', '写出'], 'job.why': ['Why', '原因'], 'job.attempts': ['Attempts', '尝试'],
  'job.notyet': ['Not done yet. This is what it would read now.', '尚未完成。这是它现在会读取的内容。'],
  'job.nobrief': ['The folder of the attempt was deleted, or Quipu performs this step itself.', '这次尝试的文件夹已删除，或这一步由 Quipu 自己做。'],
  'job.notranscript': ['No transcript: rehearsals and built-in steps have none.', '没有对话：排练和内建步骤没有对话记录。'],
  'job.read': ['It read', '读过'], 'job.verdict': ['Verdict', '判定'], 'job.denied': ['Refused attempts', '被拒绝的尝试'],
  'job.dropped': ['Written but not requested; dropped', '写了但没要求，已丢弃'], 'job.fault': ['Sent back once with', '退回过一次，理由'],
  'plan.budget': ['Budget: {0} tokens; {1} used', '预算：{0} 词元；已用 {1}'], 'plan.whole': ['in full', '全文'], 'plan.must': ['must', '必须'],
  'plan.cut': ['cut', '裁剪'], 'plan.absent': ['Missing', '不存在'],

  'files.search': ['Search paths', '搜索路径'], 'files.none': ['No file matches.', '没有匹配的文件。'], 'files.count': ['{0} files', '{0} 个文件'],
  'files.pick': ['Choose a file to read it, see who wrote each line, and view any version.', '选一个文件来阅读，看每行是谁写的，回到任何版本。'],
  'files.newest': ['newest first', '最新在前'], 'files.path': ['by path', '按路径'], order: ['Order', '排序'],
  read: ['Read', '阅读'], source: ['Source', '源文'], blame: ['Who wrote it', '谁写的'], links: ['Links', '链接'],
  'cited.by': ['Cited by', '被引用'], 'leads.to': ['Leads to', '指向'], 'cited.none': ['No file links here.', '没有文件链接到这里。'],
  'leads.none': ['It has no links.', '它没有链接。'], broken: ['broken', '断链'], presses: ['presses on', '施压'], near: ['nearest: {0}', '最近：{0}'],
  history: ['History', '历史'], 'version.now': ['newest', '最新'], 'version.nth': ['version {0} of {1}', '第 {0} 版，共 {1} 版'],
  'version.older': ['This is an older version.', '这是旧版本。'], 'version.first': ['This is the first version.', '这是第一个版本。'], 'version.removed': ['The file was removed here.', '文件在此被删除。'],
  compare: ['Compare with now', '与现在比较'], restore: ['Restore this version', '恢复此版本'], restored: ['Restored by commit @{0}', '已由提交 @{0} 恢复'],
  'restore.sure': ['Restore this version of {0}?', '恢复 {0} 的这个版本？'], 'restore.what': ['This would change. The current text stays in the journal.', '将有以下改变。当前的文字仍保留在日志里。'],
  'restore.do': ['Restore', '恢复'], 'diff.none': ['No difference.', '没有差别。'], binary: ['This file is not text.', '这个文件不是文本。'],
  'lines.more': ['{0} more lines', '还有 {0} 行'], bytes: ['{0} bytes', '{0} 字节'], 'no.history': ['no history: no commit has changed it', '没有历史：没有提交碰过它'],

  'graph.search': ['Find a file', '找文件'], 'graph.all': ['Show all', '显示全部'], 'graph.focus': ['Only its neighbours', '只看邻居'],
  'graph.counts': ['{0} files, {1} links, {2} broken, {3} orphans, {4} dense', '{0} 个文件，{1} 个链接，{2} 断链，{3} 孤立，{4} 过密'],
  'graph.part': ['The {0} most linked of {1} files are drawn. Search for a file to see its neighbours.', '画出 {1} 个文件中链接最多的 {0} 个。找一个文件看它的周围。'],
  orphan: ['orphan', '孤立'], dense: ['dense', '过密'], root: ['start of reading', '阅读起点'], open: ['Open', '打开'],
  'graph.long': ['There are many links, and reading them takes a while. The graph appears when they are read.', '链接太多，读取需要一会儿。读完就会显示。'], 'graph.keys': ['Arrow keys move the picture, + and − zoom. All nodes are in the list below it.', '方向键移动，+ 与 − 缩放。所有节点也在下面的列表里。'],
  'graph.list': ['The same as a list', '以列表显示'], 'graph.none': ['No links yet. Write [→ path#section] or a Markdown link in any file.', '还没有链接。在任何文件里写 [→ 路径#章节] 或 Markdown 链接。'],
  neighbours: ['Neighbours', '邻居'], 'level.premise': ['premise', '前提'], 'level.arc': ['arc', '弧线'], 'level.chapter': ['chapter', '章节'], 'level.scene': ['scene', '场景'], 'level.none': ['no level', '无层级'],

  'story.check': ['Check a text', '检查文字'], 'story.paste': ['Paste a sentence or a whole scene. Each claim is checked against what is already written.', '粘贴一句话或一整场。其中每个说法都会与已写内容对照检查。'],
  'story.do': ['Check', '检查'], 'story.conflicts': ['Conflicts: {0}', '冲突：{0}'], 'story.fine': ['No conflict found in {0} claims.', '{0} 个说法中没有发现冲突。'],
  line: ['line {0}', '第 {0} 行'], 'story.new': ['New text', '新文字'], 'story.written': ['Written', '已写'], 'story.unknown': ['Not decided by a rule; judge by this evidence', '没有规则可判；请据此证据判断'],
  'story.tension': ['Tension', '张力'], 'story.threads': ['Threads', '伏笔'], 'story.threshold': ['gives way at {0}', '到 {0} 即动摇'],
  'story.notension': ['No tension yet. An entry with [⊣ path#section] puts tension on that section.', '还没有什么施压。带 [⊣ 路径#章节] 的条目会对那一节施压。'],
  'story.nothreads': ['No threads. A threads file lists what was planted and when it is due.', '没有伏笔。伏笔文件写明何时埋下、何时该收。'],
  'story.inside': ['Memory against itself', '记忆的自相矛盾'], 'story.inside.none': ['No contradiction inside memory.', '记忆中没有自相矛盾之处。'], 'story.waived': ['{0} waived', '已豁免 {0} 处'],
  waive: ['It is meant', '有意如此'], 'waive.why': ['Why are both right? The reason is recorded.', '为什么两者都成立？理由会被记录。'],
  'learn.title': ['Facts for memory', '待入记忆的事实'], 'learn.to': ['for', '写入'], 'learn.accept': ['Accept into memory', '收入记忆'], 'learn.reject': ['Refuse', '拒绝'],
  'story.tab.check': ['Check and tension', '检查与张力'], 'story.tab.people': ['People and things', '人与物'], 'story.tab.time': ['Timeline', '时间线'], 'story.tab.knows': ['Who knows what', '谁知道什么'],
  'novel.name': ['Name or alias', '名字或别名'], 'novel.at': ['At the end of chapter', '到哪一章末'], 'novel.show': ['Show', '显示'], 'novel.pick': ['Choose a name to see what memory says of it and where it appears.', '选一个名字，查看记忆中的记载和出场之处。'],
  'novel.first': ['first', '首次'], 'novel.last': ['last', '末次'], 'novel.appears': ['Appearances in final chapters', '在定稿中的出场'], 'novel.unseen': ['It does not appear in a final chapter.', '没有在定稿中出场。'], 'novel.nofacts': ['Memory says nothing of it then.', '记忆中没有相应的记载。'],
  'novel.notime': ['No dated event or change yet. Facts with (from ch03) and sections named after chapters appear here.', '还没有带时间的事件或变化。带（自第三章）的事实和以章节命名的小节会显示在这里。'], 'novel.noone': ['Memory does not say who knows what. Write entries such as “knows: who cut the rope (from ch03)”.', '记忆没有写明谁知道什么。可以写“知道：谁割断了绳子（自第三章）”这样的条目。'],
  from: ['from {0}', '自 {0}'], begins: ['begins', '开始'], ends: ['ends', '结束'], 'mind.knows': ['knows', '知道'], 'mind.believes': ['believes', '以为'], 'mind.does-not-know': ['does not know', '不知道'],

  'thread.overdue': ['overdue', '逾期'], 'thread.due': ['due', '该收'], 'thread.open': ['open', '未收'], 'thread.ahead': ['ahead', '未埋'], 'thread.closed': ['closed', '已收'],
  planted: ['planted', '埋于'], due: ['due', '该收于'], closed: ['closed', '收于'], chapter: ['chapter', '章'], 'gives.way': ['gives way', '动摇'],

  'work.todos': ['Todos', '待办'], 'work.decisions': ['Decisions', '决定'], 'work.sessions': ['Sessions', '会话'], 'work.metrics': ['Metrics', '指标'], 'work.review': ['Review', '评审'],
  'work.none': ['This project has no todos, decisions, sessions or reviews. The profiles relay, worldlog and review have them.', '这个项目没有待办、决定、会话或评审。relay、worldlog、review 配置才有。'],
  'todo.pending': ['To do', '待做'], 'todo.in_progress': ['In progress', '进行中'], 'todo.blocked': ['Blocked', '受阻'], 'todo.completed': ['Done', '完成'], 'todo.cancelled': ['Cancelled', '取消'],
  'todo.add': ['Add', '添加'], 'todo.new': ['What is to be done?', '要做什么？'], 'todo.move': ['Move to', '移到'], 'todo.reason': ['Why is it blocked?', '为何受阻？'], 'todo.none': ['none', '无'],
  'todo.edit': ['Edit', '编辑'], 'todo.save': ['Save', '保存'], 'todo.more': ['With details', '填写详情'], 'todo.title': ['Title', '标题'], 'todo.description': ['Description', '描述'], 'todo.note': ['Add a note about progress', '补充进展说明'], 'todo.due': ['Due', '截止'], 'todo.assignee': ['Assigned to', '负责人'], 'todo.tag': ['Tags', '标签'],
  'todo.newest': ['the newest {0} of {1}', '最新 {0} 个，共 {1} 个'],
  'priority.critical': ['critical', '紧急'], 'priority.high': ['high', '高'], 'priority.medium': ['medium', '中'], 'priority.low': ['low', '低'], priority: ['Priority', '优先级'],
  supersedes: ['replaces', '取代'], superseded: ['replaced by', '被取代于'], 'decisions.none': ['No decision yet.', '还没有决定。'],
  'sessions.none': ['No session yet.', '还没有会话。'], rounds: ['{0} rounds', '{0} 轮'], reuse: ['pattern reuse', '模式复用'], growth: ['knowledge growth', '知识增长'], gain: ['execution gain', '执行增益'],
  'metrics.about': ['Reuse: how many sessions used a known pattern. Growth: new patterns a session. Gain: how many fewer rounds a known pattern takes.', '复用：多少会话用了已知模式。增长：每会话的新模式。增益：已知模式少用多少轮。'],
  score: ['score', '分数'], confidence: ['confidence', '把握'], status: ['status', '状态'], overall: ['overall', '总分'], verdict: ['verdict', '结论'], conflicts: ['Conflicts', '分歧'], 'by.scores': ['by the scores', '按分数'],
  'severity.critical': ['Critical comments', '关键意见'], 'severity.important': ['Important comments', '重要意见'], 'severity.minor': ['Minor comments', '次要意见'],
  'comment.open': ['open', '未回应'], 'comment.addressed': ['addressed', '已解决'], 'comment.partly': ['partly', '部分解决'], 'comment.not-addressed': ['not addressed', '未解决'], 'comment.withdrawn': ['withdrawn', '已撤回'],
  'comment.round': ['Round {0}', '第 {0} 轮'], 'comment.closed': ['Resolved comments', '已解决的意见'],
  'member.pending': ['pending', '等待'], 'member.in_progress': ['running', '进行中'], 'member.completed': ['done', '完成'], 'member.failed': ['failed', '失败'], 'member.not_applicable': ['not needed', '不需要'],

  'journal.search': ['Search reasons, files, actors', '搜索原因、文件、参与者'], 'journal.actor': ['Actor', '参与者'], 'journal.file': ['File', '文件'], 'journal.kind': ['Kind', '种类'],
  'journal.changes': ['all but leases', '除租约外'], 'journal.more': ['Older', '更早'], 'journal.none': ['No commit matches.', '没有匹配的提交。'], 'journal.go': ['No match among the last 20,000 commits.', '最近两万次提交中没有匹配。'], 'journal.on': ['Continue searching', '继续搜索'], 'journal.files': ['and {0} more', '另有 {0} 个'],
  verify: ['Verify everything', '核查全部'], 'verify.ok': ['{0} records, {1} files: no problems found', '{0} 条记录，{1} 个文件：一切正常'], 'verify.bad': ['{0} problems', '{0} 个问题'], 'verify.about': ['Checks the chain of hashes and every file against the journal.', '核对哈希链，并将每个文件与日志对照。'],
  'kind.commit': ['commit', '提交'], 'kind.adopt': ['adopted', '采纳'], 'kind.amend': ['amended', '修订'], 'kind.restore': ['restored', '恢复'], 'kind.conflict-copy': ['conflict copy', '冲突副本'], 'kind.lease': ['lease', '租约'], 'kind.note': ['note', '附记'], 'kind.unknown': ['other', '其他'],
  'show.version': ['Read this version', '阅读此版本'], 'show.change': ['What changed', '改了什么'],

  'token.title': ['This page needs its address', '需要完整地址'],
  'token.what': ['Open the complete address that quipu serve printed, including the part after #.', '请打开 quipu serve 打印的完整地址，包括 # 后面的部分。'],
  'lost.title': ['Quipu does not respond', 'Quipu 没有回应'], 'lost.what': ['It was stopped, or restarted with another address. Start it again: quipu serve', '它已停止，或以新地址重启。再次启动：quipu serve'],
  live: ['live', '实时'], offline: ['not connected', '未连接'], theme: ['Dark or light', '深色或浅色'], language: ['中文', 'English'], skip: ['Skip to the content', '跳到内容'],
  failed: ['That did not work', '没有成功'], 'do': ['Do', '可以'], rule: ['Rule', '规则'], loading: ['Loading …', '加载中……'], 'read.only': ['read-only', '只读'], reload: ['Reload', '刷新'], menu: ['Views', '视图'],
  search: ['Search', '搜索'], 'search.what': ['A path, words or a question', '路径、文字或问题'], 'search.how': ['Paths and exact words are found as you write them; a question finds passages with the same meaning. Arrow keys go through the results.', '路径和文字按原样查找；问题会找到意思相近的段落。用方向键浏览结果。'],
  'search.paths': ['Paths', '路径'], 'search.text': ['Exact text', '原文'], 'search.meaning': ['Meaning', '含义'], 'search.none': ['No match.', '没有匹配。'], 'search.part': ['{0} of {1} files were searched; write more to narrow it down.', '搜索了 {1} 个文件中的 {0} 个；多写几个字可缩小范围。'], 'search.weak': ['None of them matches well.', '都不太相符。'],
  keys: ['Keyboard', '键盘'], 'keys.search': ['search', '搜索'], 'keys.help': ['this list', '本列表'], 'keys.escape': ['close what is open', '关闭打开的内容'], 'keys.arrows': ['go through a list, a table, tabs or versions', '在列表、表格、标签和版本之间移动'], 'keys.ends': ['first and last of a list', '列表的开头和结尾'], 'keys.enter': ['open the one with the focus', '打开当前项'], 'keys.zoom': ['zoom the graph', '缩放图谱'], 'keys.on': ['Shortcuts of one character', '启用单键快捷键'],
};

const kept = (() => { try { return localStorage.getItem('quipu.language'); } catch { return null; } })();
let column = (kept ?? navigator.language ?? 'en').toLowerCase().startsWith('zh') ? 1 : 0;

export const language = () => (column ? 'zh' : 'en');

export function switchLanguage() {
  column = 1 - column;
  try { localStorage.setItem('quipu.language', language()); } catch { /* a private window keeps nothing */ }
  document.documentElement.lang = language();
}

/** Returns a sentence with its placeholders replaced. An unknown key is shown unchanged, so that values from files stay readable. */
export function t(key, ...fill) {
  const said = WORDS[key]?.[column] ?? String(key).replace(/^[a-z]+\./, '');
  return said.replace(/\{(\d)\}/g, (_, nth) => fill[nth] ?? '');
}

export { WORDS };
