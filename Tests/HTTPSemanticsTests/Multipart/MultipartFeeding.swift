import HTTPSemantics
import HTTPTypes

/// Feeds a splitter and records its output, with the pieces of a part's content joined, which depend on the split.
enum MultipartFeeding {
    static func events(
        _ bytes: [UInt8], boundary: String, cuts: [Range<Int>]? = nil, ends: Bool = true
    ) -> [MultipartEvent] {
        guard var splitter = MultipartParser(boundary: boundary) else { return [] }
        var events: [MultipartEvent] = []
        for cut in cuts ?? [bytes.indices] {
            splitter.bytesReceived(bytes[cut])
            self.drain(&splitter, into: &events)
        }
        if ends {
            splitter.inputEnded()
            self.drain(&splitter, into: &events)
        }
        return events
    }

    private static func drain(_ splitter: inout MultipartParser, into events: inout [MultipartEvent]) {
        while let event = splitter.nextEvent() {
            if case .content(let more) = event, case .content(let before)? = events.last {
                events[events.count - 1] = .content(before + more)
            } else {
                events.append(event)
            }
        }
    }

    static func byByte(_ bytes: [UInt8]) -> [Range<Int>] { bytes.indices.map { $0..<$0 + 1 } }
}
