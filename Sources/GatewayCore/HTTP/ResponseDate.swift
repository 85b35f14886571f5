import HTTPSemantics
import StreamTransport

/// The current date as in responses, rendered once a second on its loop.
private final class ResponseDate {
    private var seconds: Int64 = -1
    private var rendered = ""

    var text: String {
        let now = Machine.wallClockMilliseconds() / 1000
        if now != self.seconds {
            self.seconds = now
            self.rendered = HTTPDate(seconds: now).formatted
        }
        return self.rendered
    }
}

extension Loop {
    /// Value of the field `Date` of a response that is written now (RFC 9110 §6.6.1).
    var responseDate: String { self.local(ResponseDate.self) { ResponseDate() }.text }
}
