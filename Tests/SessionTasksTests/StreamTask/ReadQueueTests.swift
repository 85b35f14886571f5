import ByteKernels
import SessionTasks
import StreamTransport
import Testing

@Suite("Queued reads of a stream task")
struct ReadQueueTests {
    /// Records the result of each read, in the order of completion.
    final class Answers {
        var list: [String] = []
    }

    private func read(
        _ number: UInt64, _ minimum: Int, _ maximum: Int, deadline: MonotonicInstant? = nil, into answers: Answers
    ) -> ReadQueue.Operation {
        .transfer(
            .init(number: number, minimum: minimum, maximum: maximum, deadline: deadline) { result in
                switch result {
                case .success(let chunk):
                    answers.list.append(
                        "\(number):\(String(decoding: chunk.bytes, as: UTF8.self))\(chunk.isAtEnd ? "." : "")")
                case .failure(let failure): answers.list.append("\(number)!\(failure)")
                }
            })
    }

    /// Performs all actions; those other than answers are recorded by name.
    private func run(_ queue: inout ReadQueue, _ answers: Answers) {
        while let action = queue.nextAction() {
            switch action {
            case .answer(let completion, let result): completion(result)
            case .closeInput: answers.list.append("closeInput")
            case .barrier(.reached(let number)): answers.list.append("barrier \(number)")
            case .barrier(.failed(let number, let failure)): answers.list.append("barrier \(number)!\(failure)")
            }
        }
    }

    private func give(_ text: String, to queue: inout ReadQueue) -> Int {
        Array(text.utf8).withRawSpan { queue.take($0) }
    }

    @Test func readsAreAnsweredInOrderWithinTheirBounds() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 2, 4, into: answers))
        queue.append(self.read(2, 1, 10, into: answers))
        #expect(self.give("a", to: &queue) == 1)
        self.run(&queue, answers)
        #expect(answers.list.isEmpty)
        #expect(self.give("bcdef", to: &queue) == 3)
        self.run(&queue, answers)
        #expect(self.give("ef", to: &queue) == 2)
        self.run(&queue, answers)
        #expect(answers.list == ["1:abcd", "2:ef"])
    }

    @Test func readGivesFewerThanItsMinimumOnlyAtTheEnd() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 5, 9, into: answers))
        queue.append(self.read(2, 1, 9, into: answers))
        _ = self.give("abc", to: &queue)
        queue.inputClosed()
        self.run(&queue, answers)
        #expect(answers.list == ["1:abc.", "2:."])
        #expect(!queue.wantsBytes)
    }

    @Test func bytesOfAWithdrawnReadGoToTheNext() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 5, 9, into: answers))
        queue.append(self.read(2, 1, 2, into: answers))
        queue.append(self.read(3, 1, 9, into: answers))
        _ = self.give("abc", to: &queue)
        #expect(queue.withdraw(1) != nil)
        self.run(&queue, answers)
        #expect(answers.list == ["2:ab", "3:c"])
    }

    @Test func timedOutReadFailsTheReadsAfterIt() {
        let answers = Answers()
        var queue = ReadQueue()
        let deadline = MonotonicInstant(nanoseconds: 10)
        queue.append(self.read(1, 1, 9, deadline: deadline, into: answers))
        queue.append(self.read(2, 1, 9, into: answers))
        queue.expire(at: MonotonicInstant(nanoseconds: 9))
        self.run(&queue, answers)
        #expect(answers.list.isEmpty)
        queue.expire(at: deadline)
        queue.append(self.read(3, 1, 9, into: answers))
        self.run(&queue, answers)
        #expect(answers.list == ["1!timed out", "2!timed out", "3!timed out"])
    }

    @Test func readSideClosesAfterTheReadsBeforeIt() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 1, 9, into: answers))
        queue.append(.close)
        queue.append(self.read(2, 1, 9, into: answers))
        self.run(&queue, answers)
        #expect(answers.list.isEmpty)
        _ = self.give("x", to: &queue)
        self.run(&queue, answers)
        #expect(answers.list == ["1:x", "closeInput", "2!\(TaskFailure.directionClosed)"])
    }

    @Test func readsAfterABarrierWaitForIt() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(.barrier(number: 7))
        queue.append(self.read(1, 1, 9, into: answers))
        self.run(&queue, answers)
        #expect(!queue.wantsBytes)
        #expect(self.give("secret", to: &queue) == 0)
        #expect(answers.list == ["barrier 7"])
        queue.liftBarrier(7)
        _ = self.give("secret", to: &queue)
        self.run(&queue, answers)
        #expect(answers.list == ["barrier 7", "1:secret"])
    }

    @Test func readsBeforeThePassedDeadlineKeepWaiting() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 1, 9, into: answers))
        queue.append(self.read(2, 1, 9, deadline: MonotonicInstant(nanoseconds: 10), into: answers))
        queue.append(.barrier(number: 3))
        queue.append(self.read(4, 1, 9, into: answers))
        queue.expire(at: MonotonicInstant(nanoseconds: 10))
        queue.append(self.read(5, 1, 9, into: answers))
        self.run(&queue, answers)
        #expect(answers.list == ["2!timed out", "barrier 3!timed out", "4!timed out", "5!timed out"])
        #expect(queue.wantsBytes && !queue.isEmpty)
        _ = self.give("x", to: &queue)
        self.run(&queue, answers)
        #expect(answers.list.last == "1:x" && queue.isEmpty)
    }

    @Test func barrierAfterAFailedReadFails() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 1, 9, into: answers))
        queue.append(.barrier(number: 2))
        queue.append(self.read(3, 1, 9, into: answers))
        queue.fail(.cancelled)
        self.run(&queue, answers)
        #expect(answers.list == ["1!cancelled", "barrier 2!cancelled", "3!cancelled"])
    }

    /// - Parameter ends: the peer had finished before the connection failed.
    @Test(arguments: [false, true])
    func bytesBeforeAFailureOfTheConnectionAreReadBeforeIt(_ ends: Bool) {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 6, 6, into: answers))
        #expect(self.give("unread", to: &queue) == 6)
        #expect(queue.withdraw(1) != nil)
        if ends { queue.inputClosed() }
        queue.connectionFailed(.peerUnresponsive)
        #expect(!queue.wantsBytes)
        for number in 2...5 { queue.append(self.read(UInt64(number), 1, 3, into: answers)) }
        self.run(&queue, answers)
        let (end, failure) = (ends ? "." : "", "\(TaskFailure.peerUnresponsive)")
        #expect(answers.list == ["2:unr", "3:ead\(end)", "4!\(failure)", "5!\(failure)"])
    }

    @Test func aReadThatLacksBytesFailsWithTheConnectionAndAllAfterIt() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 5, 9, into: answers))
        queue.append(self.read(2, 1, 9, into: answers))
        #expect(self.give("abc", to: &queue) == 3)
        queue.connectionFailed(.ended)
        self.run(&queue, answers)
        #expect(answers.list == ["1!\(TaskFailure.ended)", "2!\(TaskFailure.ended)"])
    }

    @Test func cancellingDropsUnreadBytes() {
        let answers = Answers()
        var queue = ReadQueue()
        queue.append(self.read(1, 6, 6, into: answers))
        #expect(self.give("abc", to: &queue) == 3)
        #expect(queue.withdraw(1) != nil)
        queue.inputClosed()
        queue.fail(.cancelled)
        queue.append(self.read(2, 1, 3, into: answers))
        self.run(&queue, answers)
        #expect(answers.list == ["2!cancelled"])
    }
}
