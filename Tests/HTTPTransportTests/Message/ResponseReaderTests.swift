import HTTPTransport
import Testing
import WireText

@Suite("Reading responses, RFC 9112 §6")
struct ResponseReaderTests {
    private enum State: String, CaseIterable {
        case idle, head, length, chunks, trailers, untilClose, complete, switched, stopped

        func reader() throws -> ResponseReader {
            var reader = ResponseReader(limits: MessageLimits())
            if self != .idle { reader.beginResponse() }
            switch self {
            case .idle, .head: break
            case .length: try self.begin(&reader, .length(5))
            case .chunks: try self.begin(&reader, .chunked)
            case .trailers:
                try self.begin(&reader, .chunked)
                _ = try read(&reader, "0\r\n")
            case .untilClose: try self.begin(&reader, .untilClose)
            case .complete:
                try self.begin(&reader, .none)
                _ = try read(&reader, "")
            case .switched: _ = try read(&reader, "HTTP/1.1 101 Switching\r\n\r\n")
            case .stopped: reader.stop()
            }
            return reader
        }

        private func begin(_ reader: inout ResponseReader, _ framing: ResponseFraming) throws {
            _ = try read(&reader, "HTTP/1.1 200 OK\r\n\r\n")
            reader.begin(framing)
        }
    }

    /// Every byte sequence in every state: the event, and the number of consumed bytes.
    @Test func bytesAreReadAsTheStateExpects() throws {
        let violations: [State: ResponseViolation] = [
            .idle: .unsolicited, .head: .statusLine(.malformedStartLine), .chunks: .chunk,
            .trailers: .head(.malformedFieldName),
        ]
        let events: [State: String] = [
            .length: "content 0..<3 | 3", .untilClose: "content 0..<3 | 3", .complete: "| 3", .switched: "| 0",
            .stopped: "| 3",
        ]
        for state in State.allCases {
            var reader = try state.reader()
            do throws(ResponseViolation) {
                let outcome = try read(&reader, "x\r\n")
                #expect(outcome == events[state], "\(state)")
            } catch {
                #expect(error == violations[state], "\(state)")
            }
        }
    }

    @Test func endOfInputCompletesOnlyContentThatEndsWithIt() throws {
        for state in State.allCases {
            var reader = try state.reader()
            let (completes, isReusable) = (reader.inputEnded(), reader.endResponse())
            #expect(completes == (state == .untilClose), "\(state)")
            #expect(isReusable == (state == .untilClose || state == .complete), "\(state)")
        }
    }

    @Test func stoppedReaderDiscardsEverything() throws {
        for state in State.allCases {
            var reader = try state.reader()
            reader.stop()
            let outcome = try read(&reader, "HTTP/1.1 200 OK\r\n\r\n")
            let (completes, isReusable) = (reader.inputEnded(), reader.endResponse())
            #expect(outcome == "| 19" && !completes && !isReusable, "\(state)")
        }
    }

    @Test func newResponseBeginsInEveryState() throws {
        for state in State.allCases {
            var reader = try state.reader()
            reader.beginResponse()
            let outcome = try read(&reader, "HTTP/1.1 204 No\r\n\r\n")
            #expect(outcome == "head 204 | 19", "\(state)")
            #expect(reader.headBytes == 19 && reader.bodyBytes == 0)
        }
    }

    /// Browsers skip a few bytes, too.
    @Test(arguments: ["\r\n", "\n", "\r\n\r\n"])
    func lineBreaksBeforeTheStatusLineAreSkipped(_ breaks: String) throws {
        var reader = try State.head.reader()
        #expect(try read(&reader, breaks + "HTTP/1.1 204 No\r\n\r\n").hasPrefix("head 204"))
        #expect(reader.headBytes == 19)
        reader.beginResponse()
        var outcomes: [String] = []
        for character in breaks.unicodeScalars { outcomes.append(try read(&reader, String(character))) }
        #expect(outcomes.allSatisfy { $0 == "| 1" } && reader.headBytes == 0)
        #expect(try read(&reader, "HTTP/1.1 204 No\r\n\r\n") == "head 204 | 19")
    }

    @Test func moreThanTwoLineBreaksAreNoStatusLine() throws {
        var reader = try State.head.reader()
        #expect(throws: ResponseViolation.statusLine(.malformedStartLine)) {
            _ = try read(&reader, "\r\n\r\n\r\nHTTP/1.1 204 No\r\n\r\n")
        }
    }

    @Test func bytesAfterACompleteResponsePreventReuse() throws {
        var reader = try State.length.reader()
        let outcome = try read(&reader, "helloX")
        let isReusable = reader.endResponse()
        #expect(outcome == "content 0..<5 end | 6" && !isReusable)
    }

    @Test func lengthEndsBetweenBytes() throws {
        var reader = try State.length.reader()
        let outcomes = [try read(&reader, "he"), try read(&reader, "llo")]
        #expect(outcomes == ["content 0..<2 | 2", "content 0..<3 end | 3"])
        #expect(reader.bodyBytes == 5)
        let isReusable = reader.endResponse()
        #expect(isReusable)
    }
}

/// - Returns: the events, and how many bytes were used.
private func read(_ reader: inout ResponseReader, _ text: String) throws(ResponseViolation) -> String {
    let bytes = Array(text.utf8)
    var used = 0
    var events: [String] = []
    while let event = try reader.next(bytes.span.bytes, at: &used) {
        switch event {
        case .head(let head): events.append("head \(head.status)")
        case .content(let range): events.append("content \(range)")
        case .end(let trailers): events.append(trailers.isEmpty ? "end" : "end \(trailers)")
        }
    }
    return (events + ["| \(used)"]).joined(separator: " ")
}
