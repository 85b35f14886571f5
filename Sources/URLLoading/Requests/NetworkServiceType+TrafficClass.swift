import StreamTransport

extension NSURLRequest.NetworkServiceType {
    /// The mark for traffic of this kind.
    package var trafficClass: TrafficClass {
        switch self {
        case .default: .standard
        case .background: .lowPriority
        case .responsiveData: .lowLatency
        case .avStreaming: .streaming
        case .responsiveAV: .interactive
        case .video: .conferencing
        // Calls are made and ended by the one, in older and in newer words; their sound is `voice`.
        case .voip, .callSignaling: .signaling
        case .voice: .telephony
        }
    }
}

extension URLSessionConfiguration {
    /// The request's own, or the session's.
    func trafficClass(for request: URLRequest) -> TrafficClass {
        let own = request.networkServiceType
        return (own == .default ? self.networkServiceType : own).trafficClass
    }
}
