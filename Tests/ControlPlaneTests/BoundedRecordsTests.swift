import ControlPlane
import Testing

@Suite("Records of running and finished work")
struct BoundedRecordsTests {
    private struct Work {
        let number: UInt64
        let isFinished: Bool
    }

    private static let full = ControlProblem(429, "too-many", "Everything is running.")

    private func records(limit: Int) -> BoundedRecords<Work> {
        BoundedRecords(limit: limit, full: Self.full) { $0.isFinished }
    }

    @Test func oldestFinishedRecordIsDroppedAndRunningOnesKept() throws {
        var records = self.records(limit: 3)
        for isFinished in [false, true, true, false, false] {
            _ = try records.add { Work(number: $0, isFinished: isFinished) }
        }
        #expect(records.records.map(\.number) == [1, 4, 5])
    }

    @Test func newRecordIsRefusedWhileAllAreRunning() throws {
        var records = self.records(limit: 2)
        for _ in 1...2 { _ = try records.add { Work(number: $0, isFinished: false) } }
        let problem = #expect(throws: ControlProblem.self) {
            try records.add { Work(number: $0, isFinished: false) }
        }
        #expect(problem?.status == 429)
        #expect(records.records.map(\.number) == [1, 2])
    }

    @Test func recordsAnswer503AfterTheStop() throws {
        var records = self.records(limit: 1)
        _ = try records.add { Work(number: $0, isFinished: false) }
        records.stop()
        let problem = #expect(throws: ControlProblem.self) {
            try records.add { Work(number: $0, isFinished: false) }
        }
        #expect(problem?.status == 503)
        #expect(problem?.code == "draining")
    }

    @Test func numberOfARecordIsNeverUsedAgain() throws {
        var records = self.records(limit: 2)
        _ = try records.add { Work(number: $0, isFinished: true) }
        records.remove { $0.number == 1 }
        #expect(try records.add { Work(number: $0, isFinished: true) }.number == 2)
    }
}
