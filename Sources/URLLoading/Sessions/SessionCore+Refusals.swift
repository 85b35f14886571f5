import Foundation

/// What a configuration or a request asks for that is still to come, and that must not be passed over in silence.
extension SessionCore {
    /// Why a session cannot load at all.
    func refusal(of url: URL?) -> URLError? {
        guard self.configuration.identifier != nil else { return nil }
        return LoadFailure.error(
            .unsupportedURL, url: url, text: "Background sessions are not there yet: use another configuration.")
    }

    /// Why no connection is made for a request: asked anew for where a redirect leads to.
    func refusal(of request: URLRequest) -> URLError? {
        guard let url = request.url, let scheme = url.scheme?.withLoweredLetters else { return nil }
        return self.refusal(
            ofConnectionFor: url, scheme: scheme, requiresDNSSECValidation: request.requiresDNSSECValidation)
    }

    /// - Parameter scheme: as `ProxyChoice` takes it.
    func refusal(ofConnectionFor url: URL, scheme: String, requiresDNSSECValidation: Bool = false) -> URLError? {
        if requiresDNSSECValidation || self.configuration.requiresDNSSECValidation {
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text: "Names are not validated by DNSSEC here: leave requiresDNSSECValidation false.")
        }
        return self.proxies.refusal(of: url, scheme: scheme)
    }
}
