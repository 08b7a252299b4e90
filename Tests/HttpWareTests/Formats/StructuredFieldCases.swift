/// Structured fields and their canonical forms, RFC 9651 §4.1: the facts that the HTTP working group's test suite states about
/// fields that no rule of `StructuredFieldCasesTests` covers.
///
/// A line is a field, ` -> `, and its canonical form. `=` is the field itself, `!` a field that must be refused, and `?` one that may be
/// refused. `~` and two digits are a byte; lines of a field are joined by commas.
enum StructuredFieldCases {
    static let items = #"""
        |:aGVsbG8=: -> =
        |:: -> =
        |:=aGVsbG8=: -> !
        |:a=GVsbG8=: -> !
        |:aGVsbG8: -> ?:aGVsbG8=:
        |:aGVsbG8.: -> !
        |:aGVsbG8= -> !
        |:aGVsb G8=: -> !
        |:    : -> !
        |:aGVsbG!8=: -> !
        |:aGVsbG8=!: -> !
        |:iZ==: -> ?:iQ==:
        |:/+Ah: -> =
        |:_-Ah: -> !
        |: -> !
        |?1 -> =
        |?0 -> =
        |?Q -> !
        |? 1 -> !
        |?-0 -> !
        |?T -> !
        |?F -> !
        |?t -> !
        |?f -> !
        |?True -> !
        |?False -> !
        |? -> !
        |@0 -> =
        |@1659578233 -> =
        |@-1659578233 -> =
        |@2147483648 -> =
        |@4294967296 -> =
        |@253402214400 -> =
        |@-62135596800 -> =
        |@1659578233.12 -> !
        |@999999999999999 -> ?
        |@-999999999999999 -> ?
        |@1000000000000000 -> !
        |@-1000000000000000 -> !
        |@-0 -> @0
        |@ -> !
        |@- -> !
        |@ 12345678 -> !
        |@abc -> !
        |%"foo bar" -> =
        |%" !%22#$%25&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\]^_~60abcdefghijklmnopqrstuvwxyz{|}~7e" -> =
        |%"f%C3%BC%C3%BC" -> !
        |%"f%c3%bc%c3%bc" -> =
        |%"f~c3~bc~c3~bc" -> !
        |%"~09" -> !
        |%"~0a" -> !
        |%'foo' -> !
        |%foo -> !
        |%foo" -> !
        |%"foo -> !
        |%"foo %22bar%22 \ baz" -> =
        |%"foo %a -> !
        |%"%c3%28" -> !
        |%"%a0%a1" -> !
        |%"%g0%1w" -> !
        |%"%e2%28%a1" -> !
        |%"%f0%28%8c%28" -> !
        |%"BOM: %ef%bb%bf" -> =
        |%"foo, bar" -> ?
        |%"%" -> !
        |%"%61" -> %"a"
        |2; foourl="https://foo.example.com/" -> 2;foourl="https://foo.example.com/"
        |1; a; b=?0 -> 1;a;b=?0
        |5 -> =
        |5; foo=bar -> 5;foo=bar
        |42 -> =
        |4.5 -> =
        |"hello world" -> =
        |:cHJldGVuZCB0aGlzIGlzIGJpbmFyeSBjb250ZW50Lg==: -> =
        | -> !
        | ~09 1 -> !
        |1 ~09  -> !
        |  1   -> 1
        |     1   -> 1
        |0 -> =
        |-0 -> 0
        |--0 -> !
        |-42 -> =
        |042 -> 42
        |-042 -> -42
        |00 -> 0
        |2,3 -> !
        |-a23 -> !
        |4-2 -> !
        |- 42 -> !
        |123456789012345 -> =
        |-123456789012345 -> =
        |1234567890123456 -> !
        |-1234567890123456 -> !
        |1.23 -> =
        |-1.23 -> =
        |1. 23 -> !
        |1 .23 -> !
        |- 1.23 -> !
        |123456789012.1 -> =
        |1.5.4 -> !
        |1..4 -> !
        |1.123 -> =
        |-1.123 -> =
        |1. -> !
        |1.1234 -> !
        |-1.1234 -> !
        |1234567890123.0 -> !
        |-1234567890123.0 -> !
        |1.20 -> 1.2
        |1.200 -> 1.2
        |1.230 -> 1.23
        |"foo bar" -> =
        |"" -> =
        |"foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo foo " -> =
        |"   " -> =
        |"f~c3~bc~c3~bc" -> !
        |"~09" -> !
        |" ~0a " -> !
        |'foo' -> !
        |"foo -> !
        |"foo \"bar\" \\ baz" -> =
        |"foo \," -> !
        |"foo \" -> !
        |"foo \ -> !
        |"foo, bar" -> ?
        |a_b-c.d3:f%00/* -> =
        |fooBar -> =
        |FooBar -> =
        """#

    static let lists = #"""
        |"foo", "bar", "It was the best of times." -> =
        |foo, bar -> =
        |("foo" "bar"), ("baz"), ("bat" "one"), () -> =
        |("foo"; a=1;b=2);lvl=5, ("bar" "baz");lvl=1 -> ("foo";a=1;b=2);lvl=5, ("bar" "baz");lvl=1
        |abc;a=1;b=2; cde_456, (ghi;jk=4 l);q="9";r=w -> abc;a=1;b=2;cde_456, (ghi;jk=4 l);q="9";r=w
        |1, 42 -> =
        | -> =
        |  42, 43 -> 42, 43
        |42 -> =
        |1,42 -> 1, 42
        |1 , 42 -> 1, 42
        |1~09,~0942 -> 1, 42
        |1, 42, -> !
        |1,,42 -> !
        |1, , 42 -> !
        |(1 2), (42 43) -> =
        |(42) -> =
        |() -> =
        |(1),(),(42) -> (1), (), (42)
        |(  1  42  ) -> (1 42)
        |(1~09 42) -> !
        |(1 42 -> !
        |(1 2, (42 43) -> !
        |(abc"def"?0123*dXZ3*xyz) -> !
        |( -> !
        |((1)) -> !
        |(a=1) -> !
        |123456789012345, 1 -> =
        |1234567890123456, 1 -> !
        |123456789012.123, 1.1 -> =
        |abc_123;a=1;b=2; cdef_456, ghi;q=9;r="+w" -> abc_123;a=1;b=2;cdef_456, ghi;q=9;r="+w"
        |text/html;q=1.0 -> =
        |text/html;a;q=1.0 -> =
        |text/html;q=1.0;a -> =
        |text/html,text/plain;q=0.5 -> text/html, text/plain;q=0.5
        |text/html, text/plain;q =0.5 -> !
        |text/html, text/plain;q= 0.5 -> !
        |text/html, text/plain ;q=0.5 -> !
        |text/html, text/plain; q=0.5 -> text/html, text/plain;q=0.5
        |text/html  ,  text/plain;  q=0.5;  charset=utf-8 -> text/html, text/plain;q=0.5;charset=utf-8
        |text/html, text/plain;q=0.5 -> =
        |text/html,text/plain;q=0.5, -> !
        |text/html,,text/plain;q=0.5, -> !
        |a;b=1;c=2;b=3 -> a;b=3;c=2
        |a;m;z;t -> =
        |a;b=1; -> !
        |a;b=1;  -> !
        |a;=1 -> !
        |a; -> !
        |a;  -> !
        |(abc_123);a=1;b=2, cdef_456 -> =
        |(abc_123;a=1;b=2;cdef_456) -> =
        |(abc_123;a=1;b=2);cdef_456 -> =
        |a_b-c3/* -> =
        |fooBar -> =
        |FooBar -> =
        """#

    static let dictionaries = #"""
        |en="Applepie", da=:w4ZibGV0w6ZydGUK: -> =
        | -> =
        |a=1 -> =
        |a=(1 2) -> =
        |a=(1) -> =
        |a=() -> =
        |a=1,b=2 -> a=1, b=2
        |a=1 ,  b=2 -> a=1, b=2
        |a=1~09,~09b=2 -> a=1, b=2
        |     a=1 ,  b=2 -> a=1, b=2
        |a =1, b=2 -> !
        |a=1, b= 2 -> !
        |a=1, b=2 -> =
        |a=1, b, c=3 -> =
        |a, b, c -> =
        |a, b=2 -> =
        |a=1, b -> =
        |a=1, b;foo=9, c=3 -> =
        |a=1, b=?1;foo=9, c=3 -> a=1, b;foo=9, c=3
        |a=1, b=2, -> !
        |a=1,,b=2, -> !
        |a=1,b=2,a=3 -> a=3, b=2
        |m, z, t -> =
        |a=1,1b=2,a=1 -> !
        |a=1,B=2,a=1 -> !
        |a=1,b!=2,a=1 -> !
        |en="Applepie", da=:w4ZibGV0w6ZydGU=: -> =
        |a=?0, b, c; foo=bar -> a=?0, b, c;foo=bar
        |rating=1.5, feelings=(joy sadness) -> =
        |a=(1 2), b=3, c=4;aa=bb, d=(5 6);valid -> =
        |foo=1, bar=2 -> =
        |abc=123;a=1;b=2, def=456, ghi=789;q=9;r="+w" -> =
        |a=b; q=1.0 -> a=b;q=1.0
        |a=(1 2); q=1.0 -> a=(1 2);q=1.0
        |a=3;c;d=5 -> =
        |a=3;c=5;d -> =
        |a=b;c=1,d=e;f=2 -> a=b;c=1, d=e;f=2
        |a=b;q =0.5 -> !
        |a=b;q= 0.5 -> !
        |a=b ;q=0.5 -> !
        |a=b; q=0.5 -> a=b;q=0.5
        |a=b;  c=1  ,  d=e; f=2; g=3 -> a=b;c=1, d=e;f=2;g=3
        |a=b;c=1, d=e;f=2 -> =
        |a=b; q=1.0, -> !
        |a=b; q=1.0,,c=d -> !
        """#
}
