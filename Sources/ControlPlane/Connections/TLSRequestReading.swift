import ControlAPI
import TLSEngine

/// Makes a TLS context of what a client asks for, or says what is wrong with it.
struct TLSRequestReading {
    let request: TLSRequest
    let speaksWebSocket: Bool
    /// Where the members stand in the body.
    var pointer = "/tls"

    init(_ request: TLSRequest, speaksWebSocket: Bool, pointer: String = "/tls") {
        self.request = request
        self.speaksWebSocket = speaksWebSocket
        self.pointer = pointer
    }

    func context() throws(ControlProblem) -> TLSContext {
        var configuration = TLSConfiguration.client()
        configuration.applicationProtocols =
            self.request.applicationProtocols ?? (self.speaksWebSocket ? ["http/1.1"] : [])
        guard configuration.applicationProtocols.allSatisfy({ (1...255).contains($0.utf8.count) }) else {
            throw .invalid("\(self.pointer)/applicationProtocols", "Each protocol is to have 1 to 255 bytes.")
        }
        switch self.request.minimumVersion {
        case nil, "1.2": break
        case "1.3": configuration.minimumVersion = .tls13
        default: throw .invalid("\(self.pointer)/minimumVersion", "minimumVersion is to be 1.2 or 1.3.")
        }
        if let pem = self.request.authorities { configuration.trust = .only([.pem(Array(pem.utf8))]) }
        if self.request.insecure == true { configuration.peerVerification = .none }
        do throws(TLSFailure) {
            return try TLSContext(configuration)
        } catch {
            throw .invalid(self.pointer, "These TLS settings cannot be used: \(error.description)")
        }
    }
}
