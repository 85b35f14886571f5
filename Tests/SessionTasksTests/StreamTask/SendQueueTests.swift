import SessionTasks
import StreamTransport
import Testing

@Suite("Queued writes of a stream task")
struct SendQueueTests {
    final class Answers {
        var list: [String] = []
    }

    private func send(
        _ number: UInt64, _ count: Int, deadline: MonotonicInstant? = nil, into answers: Answers
    ) -> SendQueue.Operation {
        .transfer(
            .init(number: number, bytes: Array(repeating: 0, count: count), deadline: deadline) { result in
                switch result {
                case .success: answers.list.append("\(number)")
                case .failure(let failure): answers.list.append("\(number)!\(failure)")
                }
            })
    }

    private func run(_ queue: inout SendQueue, _ answers: Answers, sent: UInt64) {
        while let action = queue.nextAction(sentBytes: sent, mayWrite: true) {
            switch action {
            case .write(let bytes, let offset):
                answers.list.append("write \(bytes.count - offset)")
                queue.didWrite(bytes.count - offset, writtenBytes: UInt64(bytes.count))
            case .answer(let completion, let result): completion(result)
            case .closeOutput: answers.list.append("closeOutput")
            case .barrier(.reached(let number)): answers.list.append("barrier \(number)")
            case .barrier(.failed(let number, let failure)): answers.list.append("barrier \(number)!\(failure)")
            }
        }
    }

    @Test func writeIsDoneOnlyWhenTheKernelTookEveryByte() {
        let answers = Answers()
        var queue = SendQueue()
        queue.append(self.send(1, 10, into: answers))
        self.run(&queue, answers, sent: 9)
        #expect(answers.list == ["write 10"])
        self.run(&queue, answers, sent: 10)
        #expect(answers.list == ["write 10", "1"])
    }

    @Test func writeSideClosesAfterTheWritesBeforeIt() {
        let answers = Answers()
        var queue = SendQueue()
        queue.append(self.send(1, 3, into: answers))
        queue.append(.close)
        queue.append(self.send(2, 3, into: answers))
        self.run(&queue, answers, sent: 3)
        #expect(answers.list == ["write 3", "1", "closeOutput", "2!\(TaskFailure.directionClosed)"])
    }

    @Test func onlyAWriteThatHasNotBegunIsWithdrawn() {
        let answers = Answers()
        var queue = SendQueue()
        queue.append(self.send(1, 3, into: answers))
        queue.append(self.send(2, 3, into: answers))
        self.run(&queue, answers, sent: 0)
        #expect(queue.withdraw(1) == nil)
        #expect(queue.withdraw(2) != nil)
    }

    @Test func failureFailsPendingAndLaterWrites() {
        let answers = Answers()
        var queue = SendQueue()
        queue.append(self.send(1, 3, into: answers))
        queue.append(self.send(2, 3, into: answers))
        queue.fail(.cancelled)
        queue.append(self.send(3, 3, into: answers))
        self.run(&queue, answers, sent: 0)
        #expect(answers.list == ["1!cancelled", "2!cancelled", "3!cancelled"])
    }

    @Test func timedOutWritePreventsACleanClose() {
        let answers = Answers()
        var queue = SendQueue()
        queue.append(self.send(1, 3, into: answers))
        queue.append(self.send(2, 3, deadline: MonotonicInstant(nanoseconds: 10), into: answers))
        queue.append(.close)
        queue.append(.barrier(number: 4))
        self.run(&queue, answers, sent: 0)
        queue.expire(at: MonotonicInstant(nanoseconds: 10))
        self.run(&queue, answers, sent: 0)
        #expect(answers.list == ["write 3", "2!timed out", "barrier 4!timed out"])
        self.run(&queue, answers, sent: 3)
        queue.append(.close)
        self.run(&queue, answers, sent: 3)
        #expect(answers.list.suffix(1) == ["1"] && queue.isEmpty)
    }
}
