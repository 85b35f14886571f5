/// Records of running and finished work, in the order of their start.
///
/// Bounded: a new record replaces the oldest finished one. Records of running work are never dropped.
package struct BoundedRecords<Record> {
    private let limit: Int
    private let isFinished: @Sendable (Record) -> Bool
    /// Refusal when all records are of running work.
    private let full: ControlProblem
    package private(set) var records: [Record] = []
    private var last: UInt64 = 0
    private var isStopped = false

    /// - Parameters:
    ///   - limit: number of records kept; at least 1.
    ///   - full: thrown by `add` while all of them are of running work.
    package init(limit: Int, full: ControlProblem, isFinished: @escaping @Sendable (Record) -> Bool) {
        self.limit = max(1, limit)
        self.full = full
        self.isFinished = isFinished
    }

    /// - Parameter make: makes the record; its number counts from 1 and is never used again.
    /// - Throws: `full`, or `.draining` (503) after `stop`.
    package mutating func add(_ make: (UInt64) -> Record) throws(ControlProblem) -> Record {
        guard !self.isStopped else { throw .draining }
        if self.records.count >= self.limit {
            guard let oldest = self.records.firstIndex(where: self.isFinished) else { throw self.full }
            self.records.remove(at: oldest)
        }
        self.last += 1
        let record = make(self.last)
        self.records.append(record)
        return record
    }

    package mutating func remove(where matches: (Record) -> Bool) {
        self.records.removeAll(where: matches)
    }

    /// Refuses new records from now on.
    package mutating func stop() {
        self.isStopped = true
    }
}

extension BoundedRecords: Sendable where Record: Sendable {}
