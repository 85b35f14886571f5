import ByteKernels
import HTTPTransport
import Testing

@Suite("Sending a request body")
struct OutgoingBodyTests {
    /// Returns scripted results.
    private final class Scripted: BodySource, @unchecked Sendable {
        var answers: [BodyRead]
        var rooms: [Int] = []
        var rewinds = true
        private var next: UInt8 = 0

        init(_ answers: [BodyRead]) { self.answers = answers }

        func read(into room: inout MutableRawSpan) -> BodyRead {
            self.rooms.append(room.byteCount)
            guard !self.answers.isEmpty else { return .end }
            let answer = self.answers.removeFirst()
            if case .bytes(let count) = answer, count > 0, count <= room.byteCount {
                let bytes = (0..<count).map { _ -> UInt8 in
                    self.next += 1
                    return self.next
                }
                bytes.withRawSpan { room.copy($0, at: 0) }
            }
            return answer
        }

        func rewind() -> Bool { self.rewinds }
    }

    private func describeNext(of body: inout OutgoingBody) -> String {
        switch body.next() {
        case .piece(let count): "piece \(body.withPiece(count) { [UInt8]($0) })"
        case .end: "end"
        case .later: "later"
        case .failed(let failure): "\(failure)"
        }
    }

    @Test func piecesArePulledAsTheSourceProvidesThem() {
        var body = OutgoingBody(Scripted([.bytes(2), .later, .bytes(1), .end]), length: nil)
        #expect((0..<4).map { _ in self.describeNext(of: &body) } == ["piece [1, 2]", "later", "piece [3]", "end"])
    }

    @Test func bodyEndsAtItsLengthWithoutAskingFurther() {
        let source = Scripted([.bytes(2), .bytes(1)])
        var body = OutgoingBody(source, length: 3)
        #expect((0..<3).map { _ in self.describeNext(of: &body) } == ["piece [1, 2]", "piece [3]", "end"])
        #expect(source.rooms == [4, 2])
    }

    @Test func sourceIsHeldToItsLength() {
        var short = OutgoingBody(Scripted([.bytes(2), .end]), length: 5)
        _ = short.next()
        #expect(self.describeNext(of: &short) == "tooShort(missing: 3)")
        var long = OutgoingBody(Scripted([.bytes(4)]), length: 3)
        #expect(self.describeNext(of: &long) == "tooLong")
        var failing = OutgoingBody(Scripted([.failed]), length: nil)
        #expect(self.describeNext(of: &failing) == "sourceFailed")
    }

    @Test(arguments: [0, -5, Int.max])
    func wrongCountOfASourceIsClamped(_ count: Int) {
        var body = OutgoingBody(Scripted([.bytes(count)]), length: nil)
        switch body.next() {
        case .later: #expect(count <= 0)
        case .piece(let count): #expect(count == OutgoingBody.pieceLimit)
        case .end, .failed: Issue.record("neither")
        }
    }

    @Test func onlyASourceThatWasReadIsRewound() {
        let source = Scripted([.bytes(1), .end])
        source.rewinds = false
        var body = OutgoingBody(source, length: nil)
        #expect(body.rewind() == true)
        _ = body.next()
        #expect(body.rewind() == false)
        source.rewinds = true
        #expect(body.rewind() == true)
    }
}
