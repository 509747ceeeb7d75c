/// Ids, names and values as they stand in JSON, at which stores and readers have gone wrong before.
package enum HostileJSON {
    /// Ids of records, which may be names of fields as well.
    package static let ids = [
        #""'; DROP TABLE change; --""#, #""\"'`""#, #""\\""#, #""\\x00ff""#, #""\\N""#, #""{1,NULL,\"a\"}""#,
        #""?1 $1 :a @b %s %""#, #""NULL""#, #"" ""#, #""a ""#, #""é\u0323""#, #""\u202eabc\u200f""#,
        #""\u05e9\u05dc\u05d5\u05dd""#, #""\ud83d\udc69\u200d\ud83d\udc67""#, #""\uffff""#, #""\udbff\udfff""#,
        #""\u0085""#,
        #""\ufb01""#, #""\u0130i""#, #""\u212a""#, #""T1""#, #""00""#, #""0""#, #""-0""#, #""1e1""#,
        #""[\"']\",null,-0.0]""#,
        #""{\"id\":\"local-1\"}""#, #""9223372036854775808""#,
        #""\#(String(repeating: "é", count: 64))""#, #""\#(String(repeating: "i", count: 127))\\""#,
    ]

    /// Values of fields.
    package static let values =
        ids + [
            #""""#, #""\u0000""#, #""a\u0000b""#, #""\\u0000""#, #""\t\r\n\b\f\/""#, #""true""#, #""null""#,
            #""\ufeff""#, #""\u2028\u2029""#, #""{\"a\":[{\"a\":{\"a\":[[[]]]}},\"local-2\",1e999]}""#,
            #""\#(String(repeating: #"\u0000'\\""#, count: 1500))""#, #""\#(String(repeating: "👩‍👩‍👧", count: 900))""#,
            "-9223372036854775808", "9007199254740991", "9007199254740992", "9007199254740993",
            #"{"$int":"9007199254740993"}"#, #"{"$int":"-9223372036854775808"}"#, #"{"$int":"5"}"#, "-0", "0.0",
            "-0.0", "0.1", "1E2", "1.0", "100.0", "1e308", "-1.7976931348623157e308", "5e-324", "2.5e-7",
            "123456789012345680.0", "0.30000000000000004", #"{"$real":"-inf"}"#, #"{"$blob":""}"#,
            #"{"$blob":"J1wAIg=="}"#, #"{"$blob":"\#(String(repeating: "AP8n", count: 700))"}"#,
        ]

    /// What no field may hold: a request with one of them is refused as a whole.
    package static let invalid = [
        "true", "1e400", "[]", "{}", #"{"a":1}"#, #"{"$what":1}"#, #""\ud800""#, #""\udc00\ud800""#, #"{"$int":"01"}"#,
        #"{"$int":9}"#, #"{"$real":"nan"}"#, #"{"$blob":"="}"#, "01", "+1", "1.", "NaN", "'x'", "\"\u{0}\"",
        "123456789012345678901234567890",
    ]
}
