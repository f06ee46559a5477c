package sst
import ("testing";"fmt";"os")
func TestTry(t *testing.T){
 r,err:=Open(os.Getenv("SST"),Default()); if err!=nil{t.Fatal(err)}
 defer r.Close()
 for { s,err:=r.Next(t.Context()); if err!=nil{fmt.Println(err);break}
  fmt.Println("step",s.Index,len(s.Variables),"attrs",len(s.Attributes))
  for i:=range s.Variables{ v:=&s.Variables[i]; for j:=range v.Blocks{ b:=&v.Blocks[j]; if i<6 {fmt.Println(v.Name,v.Type,v.Shape,b.Count,b.Size())}}}
 }
}
