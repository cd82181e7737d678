//! 日志：只增不减的记录，每条一行。
//!
//! 凡是确认过的都能从日志重做，因为记录先于一切动作写下。

/// 日志里的一条记录，与前一条相连。
pub struct Record {
    /// 序号，从一开始。
    pub number: u64,
    pub text: String,
}

/// 内存中的日志。
pub struct Journal {
    records: Vec<Record>,
}

impl Journal {
    /// 追加一条记录，返回它的序号。记录不能为空，否则无法与残缺的记录区分。
    pub fn append(&mut self, text: &str) -> u64 {
        let number = next(self.records.len());
        self.records.push(Record { number, text: text.to_owned() });
        number
    }
}

/// 下一条记录的序号。
fn next(len: usize) -> u64 {
    len as u64 + 1
}
