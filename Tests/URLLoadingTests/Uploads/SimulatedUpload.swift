import StreamTransport

/// The one upload of a server that follows revision 12 of draft-ietf-httpbis-resumable-upload: what it has, and what it
/// answers. Without IO.
final class SimulatedUpload {
    typealias Fields = [(name: String, value: String)]

    enum Reply: Equatable {
        case none
        /// Sends the 104 response that names the upload resource.
        case announce
        case respond(Int)
        /// Ends the connection.
        case cut
    }

    /// How the connections of interrupted requests end.
    enum End: CaseIterable {
        case finish
        case reset
    }

    static let resource = "/up/1"

    private(set) var content: [UInt8] = []
    private(set) var isComplete = false
    /// The requests: method, and the offset of a part.
    private(set) var requests: [String] = []
    private(set) var complaints: [String] = []
    /// After how many bytes of its body each request is cut; later ones are not.
    private var cuts: ArraySlice<Int>
    /// Bytes that the current request may still bring.
    private var budget = Int.max
    private var completes = false

    init(cuts: [Int]) {
        self.cuts = cuts[...]
    }

    func headReceived(method: String, path: String, _ fields: [String: String]) -> Reply {
        let offset = fields["upload-offset"].flatMap { Int($0) }
        self.requests.append(method + (offset.map { " \($0)" } ?? ""))
        if fields["upload-draft-interop-version"] != "9" { self.complaints.append("\(method) without the version") }
        switch method {
        case "HEAD":
            if path != Self.resource { self.complaints.append("HEAD \(path)") }
            if fields["upload-complete"] != nil || offset != nil { self.complaints.append("HEAD with \(fields)") }
            return .respond(204)
        case "PATCH":
            if path != Self.resource || fields["content-type"] != "application/partial-upload" {
                self.complaints.append("PATCH \(path) \(fields)")
            }
            guard offset == self.content.count, !self.isComplete else { return .respond(409) }
            return self.begin(fields, announces: false)
        default:
            if path != "/up" || offset != nil { self.complaints.append("\(method) \(path)") }
            self.content = []
            return self.begin(fields, announces: true)
        }
    }

    private func begin(_ fields: [String: String], announces: Bool) -> Reply {
        self.completes = fields["upload-complete"] == "?1"
        self.budget = self.cuts.popFirst() ?? .max
        if announces { return .announce }
        return self.budget == 0 ? .cut : .none
    }

    /// - Returns: whether the connection is to be cut.
    func bodyReceived(_ bytes: ArraySlice<UInt8>) -> Bool {
        let taken = bytes.prefix(self.budget)
        self.content += taken
        self.budget -= taken.count
        return self.isCut
    }

    /// Whether the current request has brought as much as it may.
    var isCut: Bool { self.budget == 0 }

    func bodyEnded() -> Reply {
        if self.isCut { return .cut }
        self.isComplete = self.completes
        return .respond(self.isComplete ? 200 : 204)
    }

    /// The fields of an informational response or a response.
    func fields(_ status: Int) -> Fields {
        let version = ("upload-draft-interop-version", "9")
        if status == 104 { return [version, ("location", Self.resource)] }
        return [
            version, ("upload-offset", "\(self.content.count)"), ("upload-complete", self.isComplete ? "?1" : "?0"),
        ]
    }
}
