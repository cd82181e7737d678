//! Sentences for the synthetic set. Each kind has the statement in memory, sentences that
//! contradict it, and harmless near-misses. `{n}` is a name, `{m}` another name, `{x}` the value in
//! memory, `{y}` a different value.

pub struct Kind {
    pub name: &'static str,
    pub memory: &'static str,
    /// Pairs: the value in memory and a different value.
    pub values: &'static [(&'static str, &'static str)],
    pub bad: &'static [&'static str],
    pub fine: &'static [&'static str],
}

pub const NAMES_EN: &[&str] = &[
    "Ilse", "Bram", "Corvin", "Dagny", "Tobias", "Wren", "Hester", "Lucan", "Marit", "Osric",
];
pub const NAMES_ZH: &[&str] = &[
    "林晚", "周砺", "苏禾", "顾行", "阿荻", "魏岚", "程野", "孟秋", "裴青", "何苗",
];

pub const EN: &[Kind] = &[
    Kind {
        name: "hand",
        memory: "## {n}\n- handed: {x}\n\n## {m}\n- drive: to be left in peace\n",
        values: &[("left", "right"), ("right", "left")],
        bad: &[
            "{n} picked up the pen with the {y} hand and signed.",
            "At the desk {n} wrote three lines with the {y} hand.",
            "{n}, {y}-handed since birth, took the chisel.",
            "{n} threw the stone hard with the {y} hand.",
            "{n} bent over the paper. Slowly, with the {y} hand, the letter was written.",
            "{n} is {y}-handed, as everyone at the mill knows.",
        ],
        fine: &[
            "{n} kept the {y} hand in a pocket.",
            "{n} steadied the page with the {y} hand while writing.",
            "{n} signed with the {x} hand.",
            "{m} wrote to {n} with the {y} hand.",
            "With the {x} wrist bandaged, {n} wrote clumsily with the {y} hand.",
            "{n} asked whether {m} was {y}-handed.",
        ],
    },
    Kind {
        name: "colour",
        memory: "## {n}\n- eyes: {x}\n\n## {m}\n- drive: to be left in peace\n",
        values: &[
            ("green", "blue"),
            ("grey", "brown"),
            ("brown", "green"),
            ("blue", "grey"),
        ],
        bad: &[
            "{n}'s {y} eyes narrowed.",
            "{n} had {y} eyes and a scar on the chin.",
            "The eyes of {n} were {y}.",
            "{n} laughed, and those {y} eyes shone.",
            "{n} looked at the sea with wide {y} eyes.",
        ],
        fine: &[
            "{n} closed both eyes against the {y} light.",
            "{n}'s {x} eyes narrowed.",
            "{m} had {y} eyes, unlike {n}.",
            "{n} tied a {y} scarf over the eyes of the horse.",
            "{n} stared at the {y} door until it hurt.",
        ],
    },
    Kind {
        name: "trade",
        memory: "## {n}\n- occupation: {x}\n",
        values: &[
            ("weaver", "miller"),
            ("surgeon", "priest"),
            ("printer", "cobbler"),
            ("mason", "tailor"),
        ],
        bad: &[
            "{n} was a {y} in a small town.",
            "{n}, a {y}, knew everyone on the street.",
            "{n} worked as a {y} all year.",
            "By trade {n} is a {y}.",
        ],
        fine: &[
            "{n} went to see the {y}.",
            "{n} had once been a {y}.",
            "{n} was a {x} and proud of it.",
            "{n}'s uncle was a {y}.",
        ],
    },
    Kind {
        name: "relation",
        memory: "## {n}\n- mother: {x}\n- birthplace: Arden\n",
        values: &[("Judith", "Helena"), ("Agnes", "Ruth")],
        bad: &[
            "{n}'s mother {y} was waiting at the gate.",
            "{n} wrote home to his mother, {y}, every week.",
            "{n} was born in Calder, far from any river.",
            "{n}'s mother was {y}, who sold eels.",
        ],
        fine: &[
            "{n}'s mother met {y} at the gate.",
            "{n}'s mother {x} was waiting at the gate.",
            "{n} was born in Arden, by the river.",
            "{n}'s godmother {y} sent a coat.",
        ],
    },
    Kind {
        name: "age",
        memory: "## {n}\n- age: {x}\n",
        values: &[("27", "33"), ("44", "39"), ("61", "58"), ("19", "23")],
        bad: &[
            "{n}, {y}, stepped off the train.",
            "{n} was {y} years old and had no money.",
            "{n} was {y}.",
            "At the inn sat {n}, a {y}-year-old man with a cough.",
            "{n} is now {y} years of age.",
        ],
        fine: &[
            "{n} was {y} when the war ended.",
            "{n} had waited {y} days.",
            "{n} lived at number {y}.",
            "{n} drank a {y}-year-old brandy.",
            "{n} was {x} years old and had no money.",
        ],
    },
    Kind {
        name: "count",
        memory: "## The Granary\n- windows: {x}\n- {n}: keeper\n",
        values: &[("12", "14"), ("eight", "nine"), ("30", "20")],
        bad: &[
            "The Granary has {y} windows, all of them dark.",
            "Light fell through the {y} windows of The Granary.",
            "The Granary had {y} windows and one door.",
            "There are {y} windows in The Granary.",
        ],
        fine: &[
            "In The Granary {n} opened two windows.",
            "The Granary has about {y} windows.",
            "{n} counted {y} sacks in The Granary.",
            "The Granary has {x} windows, all of them dark.",
        ],
    },
    Kind {
        name: "date",
        memory: "## {n}\n- born: {x}\n\n## The Long Strike\n- when: 1893\n",
        values: &[("1861", "1864"), ("1850", "1849")],
        bad: &[
            "{n} was born in {y}.",
            "{n} was born in the autumn of {y}.",
            "The Long Strike began in 1895.",
            "The Long Strike took place in 1891.",
        ],
        fine: &[
            "{n} left for the coast in {y}.",
            "{n} was born in {x}.",
            "After The Long Strike, in 1895, {n} married.",
            "The Long Strike was remembered in 1895.",
        ],
    },
    Kind {
        name: "order",
        memory: "## The Long Strike\n- when: 1893\n\n## The Plague Year\n- when: 1902\n\n## {n}\n- drive: {x}\n",
        values: &[("gold", "x"), ("peace", "x")],
        bad: &[
            "The Plague Year came before The Long Strike.",
            "The Long Strike happened after The Plague Year.",
            "Before The Long Strike there was The Plague Year.",
            "The Long Strike followed The Plague Year.",
        ],
        fine: &[
            "The Long Strike came before The Plague Year.",
            "{n} spoke of The Plague Year and then of The Long Strike.",
            "After The Long Strike came The Plague Year.",
            "{n} slept well before The Plague Year.",
        ],
    },
    Kind {
        name: "presence",
        memory: "## {n}\n- status: {x}\n\n## {m}\n- drive: to be left in peace\n",
        values: &[("dead", "x"), ("killed at the ford", "x")],
        bad: &[
            "{n} pulled the chair closer and grinned.",
            "“Sit,” said {m}, and {n} sat.",
            "In the doorway {n} shook the rain from a coat.",
            "{n} whispered something to {m}.",
            "Then {n} walked across the yard.",
        ],
        fine: &[
            "{m} remembered how {n} walked.",
            "{n}'s coat hung by the door.",
            "{m} visited the grave of {n}.",
            "“{n} walked this way,” {m} said.",
            "{n} had walked here often.",
        ],
    },
    Kind {
        name: "thread",
        memory: "# Threads\n\n## The missing ledger\n- planted: ch01\n- promise: who took the ledger from the office?\n- closed: [→ manuscripts/ch04.md]\n\n## {n} and the {x} coin\n- planted: ch02\n- closed:\n",
        values: &[("silver", "x"), ("copper", "x")],
        bad: &[
            "Nobody knew what had become of the missing ledger.",
            "The missing ledger remained a mystery.",
            "To this day no one knew who had the missing ledger.",
            "The missing ledger had never been found.",
        ],
        fine: &[
            "{n} put the missing ledger back on its shelf.",
            "Nobody knew what {n} had for breakfast.",
            "The missing ledger was on the table.",
            "The {x} coin remained a mystery.",
        ],
    },
    Kind {
        name: "rule",
        memory: "## Hard rules\n- Iron sinks into the marsh at once. must not: rode across the marsh, iron bridge\n\n## {n}\n- drive: {x}\n",
        values: &[("gold", "x"), ("peace", "x")],
        bad: &[
            "At dawn {n} rode across the marsh.",
            "{n} crossed by the iron bridge.",
            "They built an iron bridge in spring.",
            "{n} and two others rode across the marsh by night.",
        ],
        fine: &[
            "No one ever rode across the marsh.",
            "{n} walked around the marsh.",
            "If {n} rode across the marsh, the horse would sink.",
            "The bridge was of oak, since iron rusts.",
        ],
    },
    Kind {
        name: "term",
        memory: "| term | definition | avoid |\n|---|---|---|\n| warden | keeps the gate | guard, gatekeeper |\n| coast guard | the boats | |\n\n## {n}\n- drive: {x}\n",
        values: &[("gold", "x"), ("peace", "x")],
        bad: &[
            "The guard let {n} in.",
            "{n} bribed the gatekeeper.",
            "Every gatekeeper has a lantern.",
            "“Call the guard!” {n} cried.",
        ],
        fine: &[
            "The warden let {n} in.",
            "The coast guard saw {n}.",
            "{n} spoke in a guarded voice.",
            "The garden gate stood open.",
        ],
    },
    Kind {
        name: "metaphor",
        memory: "| concept | metaphor |\n|---|---|\n| memory | a well |\n| grief | a tide |\n\n## {n}\n- drive: {x}\n",
        values: &[("gold", "x"), ("peace", "x")],
        bad: &[
            "Memory is a tide, {n} thought.",
            "Grief is like a well.",
            "For {n}, memory was like a tide.",
            "Grief was a well without a bottom.",
        ],
        fine: &[
            "Memory is a well, {n} thought.",
            "{n} drew water from a well, full of grief.",
            "The tide took {n}'s memory of the house.",
            "Grief is like a tide.",
        ],
    },
];

pub const ZH: &[Kind] = &[
    Kind {
        name: "hand",
        memory: "## {n}\n- 惯用手：{x}\n\n## {m}\n- 驱动力：求个清静\n",
        values: &[("左", "右"), ("右", "左")],
        bad: &[
            "{n}用{y}手在契约上签下名字。",
            "{n}{y}手执笔，写得飞快。",
            "{n}是{y}撇子。",
            "{n}抬起头，{y}手掷出石子。",
            "{n}走到案前，用{y}手画了一只鸟。",
            "{n}以{y}手写信。",
        ],
        fine: &[
            "{n}{y}手插在口袋里。",
            "{n}用{x}手签了名。",
            "{m}用{y}手给{n}写信。",
            "{n}{x}腕包扎着，只好用{y}手写字。",
            "{n}问{m}是不是{y}撇子。",
            "{n}{y}手按住纸。",
        ],
    },
    Kind {
        name: "colour",
        memory: "## {n}\n- 眼睛：{x}色\n\n## {m}\n- 驱动力：求个清静\n",
        values: &[("绿", "蓝"), ("灰", "褐"), ("蓝", "灰")],
        bad: &[
            "{n}的{y}眼睛眯了起来。",
            "{n}有一双{y}色的眼睛。",
            "{n}的眼睛是{y}色的。",
            "{n}睁大{y}色的双眼。",
        ],
        fine: &[
            "{n}闭上眼睛，不看那{y}色的灯。",
            "{n}的{x}眼睛眯了起来。",
            "{m}有一双{y}色的眼睛，{n}没有。",
            "{n}盯着那扇{y}色的门。",
        ],
    },
    Kind {
        name: "trade",
        memory: "## {n}\n- 职业：{x}\n",
        values: &[("裁缝", "铁匠"), ("医生", "木匠"), ("渔夫", "石匠")],
        bad: &[
            "{n}是个{y}。",
            "{n}是一名{y}，手艺很好。",
            "{n}是镇上的{y}。",
            "{n}当{y}已经十年。",
        ],
        fine: &[
            "{n}去找{y}。",
            "{n}年轻时当过{y}。",
            "{n}是个{x}。",
            "{n}的舅舅是个{y}。",
        ],
    },
    Kind {
        name: "relation",
        memory: "## {n}\n- 母亲：{x}\n- 出生地：临安\n\n## {x}\n- 状态：在世\n\n## {y}\n- 状态：在世\n",
        values: &[("素云", "桂香"), ("兰婶", "玉娘")],
        bad: &[
            "{n}的母亲{y}在门口等着。",
            "{n}的母亲名叫{y}。",
            "{n}出生在金陵。",
            "{n}生于扬州，长在船上。",
        ],
        fine: &[
            "{n}的母亲看见{y}在门口。",
            "{n}的母亲{x}在门口等着。",
            "{n}生于临安。",
            "{n}的养母{y}送来一件衣服。",
        ],
    },
    Kind {
        name: "age",
        memory: "## {n}\n- 年龄：{x}\n",
        values: &[("27", "三十三"), ("四十四", "39"), ("61", "五十八")],
        bad: &[
            "{n}今年{y}岁。",
            "{n}，{y}岁，走下火车。",
            "{n}已是{y}岁的人了。",
            "{n}{y}岁，没有积蓄。",
        ],
        fine: &[
            "{n}{y}岁那年，战争结束了。",
            "{n}等了{y}天。",
            "{n}住在{y}号。",
            "{n}今年{x}岁。",
        ],
    },
    Kind {
        name: "count",
        memory: "## 粮仓\n- 窗户：{x}扇\n\n## {n}\n- 驱动力：求个清静\n",
        values: &[("十二", "十四"), ("8", "九"), ("三十", "20")],
        bad: &[
            "粮仓共有{y}扇窗户。",
            "粮仓有{y}扇窗户，全都黑着。",
            "粮仓的{y}扇窗户都亮了。",
            "这座粮仓一共{y}扇窗户。",
        ],
        fine: &[
            "{n}在粮仓里开了两扇窗户。",
            "粮仓大约有{y}扇窗户。",
            "{n}在粮仓里数出{y}袋米。",
            "粮仓共有{x}扇窗户。",
        ],
    },
    Kind {
        name: "date",
        memory: "## {n}\n- 出生：{x}年\n\n## 大罢工\n- 时间：1893年\n",
        values: &[("1861", "1864"), ("一八五〇", "1849")],
        bad: &[
            "{n}生于{y}年。",
            "{n}出生在{y}年的秋天。",
            "大罢工发生在1895年。",
            "大罢工始于1891年。",
        ],
        fine: &[
            "{n}{y}年去了海边。",
            "{n}生于{x}年。",
            "大罢工之后，1895年，{n}成了家。",
            "1895年，人们想起大罢工。",
        ],
    },
    Kind {
        name: "order",
        memory: "## 大罢工\n- 时间：1893年\n\n## 瘟疫\n- 时间：1902年\n\n## {n}\n- 驱动力：{x}\n",
        values: &[("金子", "x"), ("清静", "x")],
        bad: &[
            "瘟疫发生在大罢工之前。",
            "大罢工在瘟疫之后。",
            "瘟疫早于大罢工。",
            "瘟疫之后，大罢工席卷全城。",
        ],
        fine: &[
            "大罢工发生在瘟疫之前。",
            "{n}先说瘟疫，再说大罢工。",
            "大罢工之后，瘟疫来了。",
            "瘟疫之前，{n}睡得很好。",
        ],
    },
    Kind {
        name: "presence",
        memory: "## {n}\n- 状态：{x}\n\n## {m}\n- 驱动力：求个清静\n",
        values: &[("已死", "x"), ("死于渡口", "x")],
        bad: &[
            "{n}拉过椅子坐下。",
            "{m}说完，{n}点了点头。",
            "门口，{n}抖了抖身上的雨。",
            "{n}低声说了句什么。",
            "{n}穿过院子走来。",
        ],
        fine: &[
            "{m}想起{n}走路的样子。",
            "{n}的外衣挂在门边。",
            "{m}去看了{n}的坟。",
            "“{n}走过这里。”{m}说。",
            "{n}生前常走这条路。",
        ],
    },
    Kind {
        name: "thread",
        memory: "# 伏笔\n\n## 失踪的账本\n- 埋于：ch01\n- 悬念：谁从账房拿走了账本？\n- 收于：[→ manuscripts/ch04.md]\n\n## {n}的{x}币\n- 埋于：ch02\n- 收于：\n",
        values: &[("银", "x"), ("铜", "x")],
        bad: &[
            "失踪的账本去了哪里，没人知道。",
            "失踪的账本仍是个谜。",
            "至今未找到失踪的账本。",
            "谁也不知道失踪的账本在谁手里。",
        ],
        fine: &[
            "{n}把失踪的账本放回架上。",
            "没人知道{n}早饭吃了什么。",
            "失踪的账本就在桌上。",
            "{n}的{x}币仍是个谜。",
        ],
    },
    Kind {
        name: "rule",
        memory: "## 硬规则\n- 铁入沼泽即沉。must not：骑马过沼泽、铁桥\n\n## {n}\n- 驱动力：{x}\n",
        values: &[("金子", "x"), ("清静", "x")],
        bad: &[
            "天亮时{n}骑马过沼泽。",
            "{n}从铁桥上过去。",
            "春天他们修了一座铁桥。",
            "{n}与两人连夜骑马过沼泽。",
        ],
        fine: &[
            "从没有人骑马过沼泽。",
            "{n}绕着沼泽走。",
            "如果{n}骑马过沼泽，马就会沉下去。",
            "桥是橡木的。",
        ],
    },
    Kind {
        name: "term",
        memory: "| 术语 | 定义 | 勿用 |\n|---|---|---|\n| 守门人 | 看门的 | 门卫、看守 |\n| 看守所 | 关人的地方 | |\n\n## {n}\n- 驱动力：{x}\n",
        values: &[("金子", "x"), ("清静", "x")],
        bad: &[
            "门卫放{n}进来。",
            "{n}买通了看守。",
            "每个门卫都提着灯。",
            "“叫看守来！”{n}喊道。",
        ],
        fine: &[
            "守门人放{n}进来。",
            "{n}被送进看守所。",
            "{n}看着门。",
            "园门开着。",
        ],
    },
    Kind {
        name: "metaphor",
        memory: "| 概念 | 比喻 |\n|---|---|\n| 记忆 | 深井 |\n| 悲伤 | 潮水 |\n\n## {n}\n- 驱动力：{x}\n",
        values: &[("金子", "x"), ("清静", "x")],
        bad: &[
            "{n}想，记忆像潮水。",
            "悲伤就像一口深井。",
            "记忆如同潮水漫过{n}。",
            "悲伤仿佛深井。",
        ],
        fine: &[
            "{n}想，记忆像一口深井。",
            "{n}满怀悲伤，从深井里打水。",
            "潮水带走了{n}对老屋的记忆。",
            "悲伤如潮水。",
        ],
    },
];
