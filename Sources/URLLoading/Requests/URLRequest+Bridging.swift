import Foundation

/// Lets `as` turn the value into the object and back, as code for Foundation writes it.
extension URLRequest: _ObjectiveCBridgeable {
    public typealias ReferenceType = NSURLRequest

    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
        result = source.value
    }

    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSURLRequest, result: inout URLRequest?
    ) -> Bool {
        result = source.value
        return true
    }

    /// - Returns: for `nil`, a request that cannot be loaded.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        if let source { return source.value }
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}
