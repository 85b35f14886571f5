import GatewayCore

extension BridgeRequest {
    /// The options that were typed, of those there are.
    static func options(_ typed: (name: BridgeOption, texts: [String?])...) -> [Option] {
        typed.flatMap { option in option.texts.compactMap { $0 }.map { Option(option.name, $0) } }
    }
}
