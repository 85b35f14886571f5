import ByteKernels
import Testing
import URLLoading

@Suite("The input of a captured connection")
struct CapturedInputTests {
    private enum State: CaseIterable {
        case paused, full, reading, ended, closed, closedAfterTheEnd

        func input() -> CapturedInput {
            var input = CapturedInput([1, 2, 3], hasEnded: self == .ended || self == .closedAfterTheEnd)
            switch self {
            case .paused, .ended: break
            case .full:
                _ = input.bytesWanted()
                _ = CapturedInputTests.receive(CapturedInput.limit, &input)
            case .reading: _ = input.bytesWanted()
            case .closed, .closedAfterTheEnd: _ = input.close()
            }
            return input
        }
    }

    private static func receive(_ count: Int, _ input: inout CapturedInput) -> CapturedInput.FlowAction {
        [UInt8](repeating: 7, count: count).withRawSpan { input.bytesReceived($0) }
    }

    private static func take(_ count: Int, _ input: inout CapturedInput) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let taken = bytes.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return 0 }
            return input.take(into: base, count: count)
        }
        return Array(bytes.prefix(taken))
    }

    @Test func everyEventIsPermittedInEveryState() {
        for state in State.allCases {
            let isClosed = state == .closed || state == .closedAfterTheEnd
            let count = isClosed ? 0 : state == .full ? CapturedInput.limit + 3 : 3
            var input = state.input()
            #expect(input.count == count && input.isClosed == isClosed, "\(state)")
            #expect(input.hasEnded == (state == .ended || state == .closedAfterTheEnd), "\(state)")
            #expect(input.bytesWanted() == (state == .paused ? .resumeReading : .ignore), "\(state)")
            input = state.input()
            #expect(Self.receive(2, &input) == .ignore, "\(state)")
            #expect(input.count == (isClosed || state == .ended ? count : count + 2), "\(state)")
            input = state.input()
            #expect(Self.take(2, &input) == (isClosed ? [] : [1, 2]), "\(state)")
            #expect(input.count == max(0, count - 2) && input.hasEnded == state.input().hasEnded, "\(state)")
            input = state.input()
            input.inputEnded()
            #expect(input.hasEnded && input.count == count && input.isClosed == isClosed, "\(state)")
            input = state.input()
            #expect(input.close() == !isClosed && input.isClosed && input.count == 0, "\(state)")
            #expect(input.hasEnded == state.input().hasEnded, "\(state)")
        }
    }

    @Test func readingIsPausedWhileTheBufferIsFull() {
        var input = CapturedInput([], hasEnded: false)
        #expect(input.bytesWanted() == .resumeReading)
        #expect(Self.receive(CapturedInput.limit - 1, &input) == .ignore && Self.receive(1, &input) == .pauseReading)
        let half = CapturedInput.limit / 2
        #expect(Self.take(half - 1, &input).count == half - 1 && input.bytesWanted() == .ignore)
        #expect(Self.take(1, &input).count == 1 && input.bytesWanted() == .resumeReading)
        // Bytes that were taken are given back to the system as others come.
        #expect(Self.take(half, &input).count == half && input.count == 0)
        for _ in 0..<10 {
            #expect(Self.receive(half, &input) == .ignore)
            #expect(Self.take(half, &input).count == half)
        }
    }
}
